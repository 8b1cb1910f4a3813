import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EventStoreDbConnection } from '../../../../src/engines/eventstoredb/driver/connection.ts';
import { parkedStream } from '../../../../src/engines/eventstoredb/driver/events.ts';
import { readEnd } from '../../../../src/engines/eventstoredb/log/reads.ts';
import { startEventStoreDbDouble } from '../../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { eventStoreDbAt } from '../../../support/event-store/eventstoredb-under-test.ts';
import { nameOf, record } from '../../../support/event-store/store-events.ts';

/** How long a consumer works on an event before it parks it. */
const WORK_MS = 30;

/** A group with these events parked, in this order. */
async function groupWithParked(...names: string[]) {
  const double = await startEventStoreDbDouble();
  const store = eventStoreDbAt(double.url);
  const connection = new EventStoreDbConnection(double.url);
  const end = new AbortController();
  onTestFinished(async () => {
    end.abort();
    await connection.close();
    await store.close();
    await double.stop();
  });
  const subscriptions = store.subscriptions();
  await subscriptions.ensureGroup('g', { prefixes: ['transaction-'], ackTimeoutMs: 60_000 });
  const consumer = subscriptions.consume('g', { bufferSize: 10, signal: end.signal });
  const events = consumer[Symbol.asyncIterator]();
  const park = async (name: string): Promise<void> => {
    await record(store, `transaction-${name}`, name);
    const { value } = await events.next();
    await sleep(WORK_MS);
    await consumer.park(value, `reason of ${name}`);
  };
  const parked = async () => {
    const events = await subscriptions.parked('g');
    const stream = parkedStream('g');
    const firstLink = (await readEnd(connection, stream, 'first'))?.revision;
    const lastLink = (await readEnd(connection, stream, 'last'))?.revision;
    const count = firstLink === undefined || lastLink === undefined ? 0 : lastLink - firstLink + 1;
    return { events, count, firstLink, lastLink };
  };
  for (const [index, name] of names.entries()) {
    await park(name);
    await expect.poll(async () => (await parked()).count).toBe(index + 1);
  }
  return { store, subscriptions, events, park, parked };
}

describe('the parked events of a group', () => {
  test('are none for a group that never parked', async () => {
    const { parked } = await groupWithParked();
    expect(await parked()).toEqual({ events: [], count: 0, firstLink: undefined, lastLink: undefined });
  });

  test('are listed oldest first, with the consumer’s reason and the time of parking', async () => {
    const { store, parked } = await groupWithParked('b', 'a');
    const { events, ...links } = await parked();
    expect(events.map(({ event, reason }) => [nameOf(event), reason])).toEqual([
      ['b', 'reason of b'],
      ['a', 'reason of a'],
    ]);
    expect(links).toEqual({ count: 2, firstLink: 0, lastLink: 1 });
    for (const { event, parkedAtMs } of events) {
      expect(parkedAtMs - event.recordedAtMs).toBeGreaterThanOrEqual(WORK_MS - 5);
      expect(parkedAtMs).toBeLessThanOrEqual(Date.now());
    }
    expect(await store.readStream('transaction-a')).toEqual([events[1]?.event]);
  });

  test('include, in their count and links, one that was erased', async () => {
    const { store, subscriptions, parked } = await groupWithParked('a', 'b', 'c');
    await store.erase('transaction-a');
    await store.erase('transaction-c');
    const { events, ...links } = await parked();
    expect(events.map(({ event }) => nameOf(event))).toEqual(['b']);
    expect(links).toEqual({ count: 3, firstLink: 0, lastLink: 2 });
    expect(await subscriptions.replayParked('g')).toBe(3);
  });

  test('start after those that were replayed', async () => {
    const { subscriptions, events, park, parked } = await groupWithParked('a', 'b');
    expect(await subscriptions.replayParked('g')).toBe(2);
    expect(await parked()).toMatchObject({ count: 0, firstLink: undefined });
    for (let time = 0; time < 2; time++) await events.next();
    await park('c');
    await expect.poll(parked).toMatchObject({ count: 1, firstLink: 2, lastLink: 2 });
  });
});
