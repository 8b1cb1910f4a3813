import { getEventListeners } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import type {
  EventStore,
  GroupEvent,
  GroupSettings,
  ParkedEvent,
  PersistentSubscriptions,
} from '../../src/event-store/event-store.ts';
import { nameOf, record } from '../support/event-store/store-events.ts';
import { Puller } from '../support/service/puller.ts';

export interface SubscriptionsUnderTest {
  /** An empty store. */
  readonly store: EventStore;
  readonly subscriptions: PersistentSubscriptions;
  /** Lets time pass for both. */
  readonly pass: (ms: number) => Promise<void>;
  /** The shortest delay of the suite, by default 1 s. Five of them are the groups' ack timeout. */
  readonly unitMs?: number;
  /** How long a consumer must get nothing to count as quiet, by default 60 ms. */
  readonly quietMs?: number;
  /** How late a parked or replayed event may show; by default it shows at once. */
  readonly lagMs?: number;
  /** Waits until acknowledgements survive a change of the group's settings; by default they do at once. */
  readonly settled?: (group: string) => Promise<void>;
}

const SETTINGS = { prefixes: ['transaction-'] };
const GROUP = 'fan-out';

/** The contract of competing consumers. `open` returns an empty store and its groups, which the suite closes. */
export function persistentSubscriptionsContract(open: () => Promise<SubscriptionsUnderTest>): void {
  const opened = async (settings: Partial<GroupSettings> = {}) => {
    const under = await open();
    const { store, subscriptions, pass, unitMs = 1_000, quietMs = 60, lagMs = 0 } = under;
    onTestFinished(async () => {
      await subscriptions.close();
      await store.close();
    });
    const ackTimeoutMs = 5 * unitMs;
    await subscriptions.ensureGroup(GROUP, { ...SETTINGS, ackTimeoutMs, ...settings });
    const consume = (bufferSize = 10): Puller =>
      new Puller(subscriptions, { group: GROUP, bufferSize, quietMs });
    const parked = async (count: number): Promise<ParkedEvent[]> => {
      const endMs = performance.now() + lagMs;
      for (;;) {
        const found = await subscriptions.parked(GROUP);
        if (found.length === count || performance.now() >= endMs) return found;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    const settled = async (): Promise<void> => under.settled?.(GROUP);
    return { store, subscriptions, pass, unitMs, lagMs, ackTimeoutMs, consume, parked, settled };
  };
  const names = (events: readonly GroupEvent[]): string[] => events.map(({ event }) => nameOf(event)).sort();

  describe('a persistent subscription', () => {
    test('leaves nothing on its signal when its consumer ends', async () => {
      const { store, subscriptions } = await opened();
      await record(store, 'transaction-1', 'a');
      const { signal } = new AbortController();
      for await (const event of subscriptions.consume(GROUP, { bufferSize: 1, signal })) {
        expect(event.retryCount).toBe(0);
        break;
      }
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    });

    test('begins at the start of the log and continues with what is recorded later', async () => {
      const { store, consume } = await opened();
      await record(store, 'transaction-1', 'a', 'b');
      const puller = consume();
      const before = await puller.take(2);
      expect(names(before)).toEqual(['a', 'b']);
      expect(before.map(({ retryCount }) => retryCount)).toEqual([0, 0]);
      await record(store, 'transaction-2', 'c');
      expect(names(await puller.take(1))).toEqual(['c']);
    });

    test('hands out only streams with one of its prefixes', async () => {
      const { store, consume } = await opened();
      await record(store, 'account-1', 'account');
      await record(store, 'transaction-1', 'transaction');
      await record(store, 'operations', 'operation');
      const puller = consume();
      expect(names(await puller.take(1))).toEqual(['transaction']);
      expect(await puller.isQuiet()).toBe(true);
    });

    test('hands each event to one of its consumers', async () => {
      const { store, consume } = await opened();
      const [one, two] = [consume(3), consume(3)];
      const expected = Array.from({ length: 30 }, (_, index) => `e${String(index).padStart(2, '0')}`);
      const seen: GroupEvent[] = [];
      const work = async (puller: Puller): Promise<void> => {
        while (seen.length < expected.length) {
          if (await puller.isQuiet()) continue;
          const event = await puller.next();
          seen.push(event);
          await puller.consumer.ack([event]);
        }
      };
      const working = [work(one), work(two)];
      for (const name of expected) await record(store, `transaction-${name}`, name);
      await Promise.all(working);
      expect(names(seen)).toEqual(expected);
    });

    test('hands at most its buffer size to a consumer until it acknowledges', async () => {
      const { store, consume } = await opened();
      await record(store, 'transaction-1', 'a', 'b', 'c', 'd', 'e');
      const puller = consume(2);
      const first = await puller.take(2);
      expect(await puller.isQuiet()).toBe(true);
      await puller.consumer.ack(first);
      expect(names([...first, ...(await puller.take(2))])).toEqual(['a', 'b', 'c', 'd']);
    });

    test('hands out again, to another consumer, an event that was not answered in time', async () => {
      const { store, pass, unitMs, lagMs, ackTimeoutMs, consume } = await opened();
      await record(store, 'transaction-1', 'a');
      const dead = consume();
      await dead.next();
      const other = consume();
      // A server hands it to a consumer that is still connected when the time is over, and a busy machine is late.
      const early = lagMs > 0 ? unitMs : ackTimeoutMs - unitMs;
      await pass(early);
      expect(await other.isQuiet()).toBe(true);
      await dead.stop(); // it never acknowledged
      await pass(ackTimeoutMs - early);
      expect(await other.next()).toMatchObject({ event: { data: { name: 'a' } }, retryCount: 1 });
    });

    test('ignores the answer of a consumer to an event that another one holds', async () => {
      const { store, pass, ackTimeoutMs, consume, parked } = await opened();
      await record(store, 'transaction-1', 'a');
      const slow = consume();
      const held = await slow.next();
      await slow.stop();
      await pass(ackTimeoutMs);
      const other = consume();
      const taken = await other.next();
      await slow.consumer.ack([held]);
      await slow.consumer.retry(held, { reason: 'late', delayMs: 0 });
      await slow.consumer.park(held, 'late');
      expect(await other.isQuiet()).toBe(true);
      expect(await parked(0)).toEqual([]);
      await other.consumer.park(taken, 'by its holder');
      expect(await parked(1)).toMatchObject([{ reason: 'by its holder' }]);
    });

    test('never hands out again what was acknowledged', async () => {
      const { store, pass, ackTimeoutMs, consume } = await opened();
      await record(store, 'transaction-1', 'a', 'b');
      const first = consume();
      await first.consumer.ack(await first.take(2));
      await first.stop();
      const later = consume();
      await pass(ackTimeoutMs * 2);
      expect(await later.isQuiet()).toBe(true);
    });

    test('hands out a retried event after its delay, not before', async () => {
      const { store, pass, unitMs, consume } = await opened();
      await record(store, 'transaction-1', 'a');
      const puller = consume();
      await puller.consumer.retry(await puller.next(), { reason: 'not yet', delayMs: 2 * unitMs });
      await pass(unitMs);
      expect(await puller.isQuiet()).toBe(true);
      await pass(unitMs);
      expect(await puller.next()).toMatchObject({ event: { data: { name: 'a' } }, retryCount: 1 });
    });

    test('parks an event with the reason, and continues with the others', async () => {
      const { store, pass, consume, parked } = await opened();
      await record(store, 'transaction-1', 'a', 'b', 'c');
      const puller = consume();
      const [a, b] = await puller.take(3);
      if (a === undefined || b === undefined) throw new Error('two events were asked for');
      await puller.consumer.park(b, 'second');
      await pass(10);
      await puller.consumer.park(a, 'first');
      const found = await parked(2);
      expect(found.map(({ event, reason }) => [event, reason])).toEqual([
        [b.event, 'second'],
        [a.event, 'first'],
      ]);
      for (const { event, parkedAtMs } of found)
        expect(parkedAtMs).toBeGreaterThanOrEqual(event.recordedAtMs);
      expect(await puller.isQuiet()).toBe(true);
    });

    test('replays parked events as new ones', async () => {
      const { store, subscriptions, consume, parked } = await opened();
      await record(store, 'transaction-1', 'a', 'b', 'c');
      const puller = consume();
      const events = await puller.take(3);
      for (const event of events) await puller.consumer.park(event, 'parked');
      const all = await parked(3);
      expect(all).toHaveLength(3);
      expect(await subscriptions.parked(GROUP, 2)).toEqual(all.slice(0, 2));
      expect(await subscriptions.replayParked(GROUP)).toBe(3);
      const replayed = await puller.take(3);
      expect(replayed.map(({ event }) => event)).toEqual(events.map(({ event }) => event));
      expect(replayed.map(({ retryCount }) => retryCount)).toEqual([0, 0, 0]);
      expect(await parked(0)).toEqual([]);
      expect(await subscriptions.replayParked(GROUP)).toBe(0);
      if (replayed[1] === undefined) throw new Error('three were replayed');
      await puller.consumer.park(replayed[1], 'once more');
      expect(await parked(1)).toMatchObject([{ event: replayed[1].event, reason: 'once more' }]);
    });

    test('keeps its position when it is ensured again, and takes the new settings', async () => {
      const { store, subscriptions, pass, unitMs, consume, settled } = await opened();
      await record(store, 'transaction-1', 'a');
      const puller = consume();
      await puller.consumer.ack([await puller.next()]);
      await settled();
      await subscriptions.ensureGroup(GROUP, { ...SETTINGS, ackTimeoutMs: unitMs });
      await record(store, 'transaction-2', 'b');
      const held = await puller.next();
      expect(nameOf(held.event)).toBe('b');
      await puller.stop();
      await pass(unitMs);
      expect(await consume().next()).toMatchObject({ event: { data: { name: 'b' } }, retryCount: 1 });
    });

    test('leaves out events that were erased before they are handed out again', async () => {
      const { store, subscriptions, consume, parked } = await opened();
      await record(store, 'transaction-1', 'a');
      await record(store, 'transaction-2', 'b');
      const puller = consume();
      for (const event of await puller.take(2)) await puller.consumer.park(event, 'parked');
      expect(await parked(2)).toHaveLength(2);
      await store.erase('transaction-1');
      expect((await parked(1)).map(({ event }) => nameOf(event))).toEqual(['b']);
      expect(await subscriptions.replayParked(GROUP)).toBe(2); // the erased one counts too
      expect(names(await puller.take(1))).toEqual(['b']);
      expect(await puller.isQuiet()).toBe(true);
    });

    test('tells how far it is: up to the first event without an answer, and how many are parked', async () => {
      const { store, subscriptions, consume, parked, lagMs } = await opened({ ackTimeoutMs: 60_000 });
      const status = () => subscriptions.status(GROUP);
      const soon = { timeout: lagMs + 1_000 };
      expect(await subscriptions.status('never ensured')).toBeUndefined();
      expect(await status()).toEqual({ position: 0, parked: 0 });
      await record(store, 'transaction-1', 'a', 'b', 'c');
      const puller = consume();
      const [a, b, c] = await puller.take(3);
      if (a === undefined || b === undefined || c === undefined) throw new Error('three were asked for');
      expect((await status())?.position).toBeLessThan(a.event.position);
      await puller.consumer.ack([a, c]);
      await expect
        .poll(async () => (await status())?.position, soon)
        .toBeGreaterThanOrEqual(a.event.position);
      expect((await status())?.position).toBeLessThan(b.event.position);
      await puller.consumer.park(b, 'parked');
      expect(await parked(1)).toHaveLength(1);
      await expect.poll(status, soon).toMatchObject({ parked: 1 });
      await expect
        .poll(async () => (await status())?.position, soon)
        .toBeGreaterThanOrEqual(c.event.position);
      await subscriptions.replayParked(GROUP);
      await expect.poll(status, soon).toMatchObject({ parked: 0 });
      await puller.consumer.ack(await puller.take(1));
    });

    test('ends without an error when it is aborted while waiting', async () => {
      const { subscriptions } = await opened();
      const end = new AbortController();
      const consumer = subscriptions.consume(GROUP, { bufferSize: 1, signal: end.signal });
      const next = consumer[Symbol.asyncIterator]().next();
      end.abort();
      expect(await next).toMatchObject({ done: true });
    });

    test('rejects every call after it was closed', async () => {
      const { subscriptions, ackTimeoutMs } = await opened();
      const signal = new AbortController().signal;
      const consumer = subscriptions.consume(GROUP, { bufferSize: 1, signal });
      const closed = { code: 'STORE_CLOSED' };
      const waiting = expect(consumer[Symbol.asyncIterator]().next()).rejects.toMatchObject(closed);
      await subscriptions.close();
      await waiting;
      await expect(subscriptions.ensureGroup(GROUP, { ...SETTINGS, ackTimeoutMs })).rejects.toMatchObject(
        closed,
      );
      await expect(subscriptions.parked(GROUP)).rejects.toMatchObject(closed);
      await expect(subscriptions.status(GROUP)).rejects.toMatchObject(closed);
      await expect(subscriptions.replayParked(GROUP)).rejects.toMatchObject(closed);
      await expect(consumer.ack([])).rejects.toMatchObject(closed);
      await subscriptions.close();
    });
  });
}
