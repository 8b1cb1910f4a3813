import { PassThrough } from 'node:stream';
import { FORWARDS } from '@eventstore/db-client';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { EventStoreDbConnection } from '../../../../src/engines/eventstoredb/driver/connection.ts';
import { subscribe } from '../../../../src/engines/eventstoredb/log/subscribe.ts';
import type { SubscriptionBatch } from '../../../../src/event-store/event-store.ts';
import { KINDS } from '../../../support/event-store/eventstoredb-double/kinds.ts';
import { restartableNode, silent } from '../../../support/event-store/eventstoredb-under-test.ts';
import { nameOf, record } from '../../../support/event-store/store-events.ts';

/** The subscription reads this clock to decide when a look-up for a checkpoint is due. */
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());
const untilLookIsDue = () => vi.advanceTimersByTime(1_100);

/** Starts a live follower of accounts on a node whose answers to look-ups for an event can be held back. */
async function following(kind: (typeof KINDS)[number]) {
  const { double, store, signal } = await restartableNode(kind);
  const connection = new EventStoreDbConnection(double.url);
  onTestFinished(() => connection.close());
  const looks = { count: 0, answer: async (): Promise<void> => undefined };
  const { client } = connection;
  const readAll = client.readAll.bind(client);
  client.readAll = (options) => {
    if (options?.direction !== FORWARDS) return readAll(options);
    looks.count++;
    const kept = new PassThrough({ objectMode: true });
    looks.answer().then(
      () => readAll(options).pipe(kept),
      (error) => kept.destroy(error),
    );
    return Object.assign(kept, { cancel: async () => undefined }) as unknown as ReturnType<typeof readAll>;
  };
  const after = await record(store, 'account-1', 'first');
  const options = { prefixes: ['account-'], after, signal, log: silent };
  const batches = subscribe(connection, options);
  const next = async () => (await batches.next()).value as SubscriptionBatch;
  while (!(await next()).caughtUp);
  return { store, looks, next };
}

test.each(KINDS)('no event waits until the log has shown where it is, on %s', async (kind) => {
  const { store, looks, next } = await following(kind);
  const look = Promise.withResolvers<void>();
  looks.count = 0;
  looks.answer = () => look.promise;
  untilLookIsDue();
  const position = await record(store, 'transaction-1', 'other');
  let batch = await next();
  while (batch.position < position) batch = await next();
  expect([looks.count, batch.checkpoint < position]).toEqual([1, true]);
  await record(store, 'account-1', 'second');
  while (batch.events.length === 0) batch = await next();
  expect(batch.events.map(nameOf)).toEqual(['second']);
  look.resolve();
});

test.each(KINDS)(
  'a look that fails loses no event, and another one moves the checkpoint, on %s',
  async (kind) => {
    const { store, looks, next } = await following(kind);
    let failures = 0;
    looks.answer = async () => {
      if (failures++ < 2) throw Object.assign(new Error('14 UNAVAILABLE'), { code: 14 });
    };
    untilLookIsDue();
    const position = await record(store, 'transaction-1', 'other');
    while ((await next()).position < position);
    await record(store, 'account-1', 'second');
    const names: string[] = [];
    for (let checkpoint = 0; checkpoint <= position; ) {
      const batch = await next();
      names.push(...batch.events.map(nameOf));
      checkpoint = batch.checkpoint;
    }
    expect([names, failures > 1]).toEqual([['second'], true]);
  },
);

test('a subscription after an event looks for it once on EventStoreDB, since only KurrentDB reports more', async () => {
  const { looks } = await following('EventStoreDB');
  expect(looks.count).toBe(1);
});
