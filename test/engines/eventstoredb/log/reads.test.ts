import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { EventStoreDbConnection } from '../../../../src/engines/eventstoredb/driver/connection.ts';
import type { EventStoreDb } from '../../../../src/engines/eventstoredb/event-store.ts';
import { readStream } from '../../../../src/engines/eventstoredb/log/reads.ts';
import { restartableNode } from '../../../support/event-store/eventstoredb-under-test.ts';

/** The data of an event. Three such events are more than one page. */
const DATA = Buffer.from(`{"text":"${'x'.repeat(900_000)}"}`);
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

let connection: EventStoreDbConnection;
let store: EventStoreDb;

/** Records seven large events in separate streams and seven in one stream, with seven links. */
beforeEach(async () => {
  const node = await restartableNode();
  store = node.store;
  connection = new EventStoreDbConnection(node.double.url);
  onTestFinished(() => connection.close());
  const large = { type: 'Large', isJson: true, data: DATA, metadata: Buffer.from('{}') };
  for (const name of NAMES) {
    await node.double.record(`transaction-${name}`, large);
    await node.double.record('transactions', large);
    await node.double.record('links', {
      ...large,
      type: '$>',
      isJson: false,
      data: Buffer.from(`0@transaction-${name}`),
    });
  }
});

test('a stream of several pages is read to its end, or to as many events as are asked for', async () => {
  const revisions = async (range: { limit?: number; fromRevision?: number }) =>
    await readStream(connection, 'transactions', ({ event }) => Number(event?.revision), range);
  expect(await revisions({})).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(await revisions({ fromRevision: 2, limit: 4 })).toEqual([2, 3, 4, 5]);
});

test('links are followed page by page, by their own revisions', async () => {
  const range = { resolveLinkTos: true };
  const found = await readStream(connection, 'links', ({ event }) => event?.streamId, range);
  expect(found).toEqual(NAMES.map((name) => `transaction-${name}`));
});

test('the log is read backwards page by page to its start', async () => {
  const found: string[] = [];
  let before: number | undefined;
  let steps = 0;
  for (;;) {
    const batch = await store.readBackwards({ prefixes: ['transaction-'], before, limit: 500 });
    steps++;
    found.push(...batch.events.map(({ stream }) => stream));
    if (batch.atStart) break;
    before = batch.position;
  }
  expect(found).toEqual(NAMES.map((name) => `transaction-${name}`).toReversed());
  expect(steps).toBeGreaterThan(2);
});
