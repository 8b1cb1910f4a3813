import { describe, expect, onTestFinished, test } from 'vitest';
import type { GroupEvent } from '../../src/event-store/event-store.ts';
import { nameOf, record } from '../support/event-store/store-events.ts';
import { Puller } from '../support/service/puller.ts';
import type { SubscriptionsUnderTest } from './persistent-subscriptions.contract.ts';

const SETTINGS = { prefixes: ['transaction-'] };

/** The contract for several consumers, in one group and in several. `open` is as in the main contract. */
export function persistentSubscriptionsBufferContract(open: () => Promise<SubscriptionsUnderTest>): void {
  const opened = async (...groups: string[]) => {
    const { store, subscriptions, pass, unitMs = 1_000, quietMs = 60 } = await open();
    onTestFinished(async () => {
      await subscriptions.close();
      await store.close();
    });
    const ackTimeoutMs = 5 * unitMs;
    for (const group of groups) await subscriptions.ensureGroup(group, { ...SETTINGS, ackTimeoutMs });
    const consume = (group: string, bufferSize = 10): Puller =>
      new Puller(subscriptions, { group, bufferSize, quietMs });
    return { store, subscriptions, pass, unitMs, ackTimeoutMs, consume };
  };
  const names = (events: readonly GroupEvent[]): string[] => events.map(({ event }) => nameOf(event)).sort();

  describe('consumers of a persistent subscription', () => {
    test('keep an event as long as they hold it', async () => {
      const { store, subscriptions, pass, unitMs, consume } = await opened('g');
      await record(store, 'transaction-1', 'a');
      const puller = consume('g');
      await puller.consumer.retry(await puller.next(), { reason: 'once more', delayMs: 0 });
      const last = await puller.next();
      expect(last.retryCount).toBe(1);
      await pass(unitMs);
      expect(await consume('g').isQuiet()).toBe(true);
      expect(await subscriptions.parked('g')).toEqual([]);
      await puller.consumer.ack([last]);
      expect(await puller.isQuiet()).toBe(true);
    });

    test('are handed again an event that they did not answer in time, although their buffer was full', async () => {
      const { store, pass, ackTimeoutMs, consume } = await opened('g');
      await record(store, 'transaction-1', 'a');
      const only = consume('g', 1);
      expect((await only.next()).retryCount).toBe(0);
      await pass(ackTimeoutMs);
      expect(await only.next()).toMatchObject({ event: { data: { name: 'a' } }, retryCount: 1 });
    });

    test('are not handed more than their buffer size of new and retried events', async () => {
      const { store, consume } = await opened('g');
      await record(store, 'transaction-1', 'a', 'b', 'c', 'd', 'e');
      const puller = consume('g', 2);
      const [first, second] = await puller.take(2);
      if (first === undefined || second === undefined) throw new Error('two events were asked for');
      await puller.consumer.retry(first, { reason: 'once more', delayMs: 0 });
      await puller.consumer.ack([second]);
      await puller.take(2);
      expect(await puller.isQuiet()).toBe(true);
    });
  });

  describe('large events', () => {
    test('are all handed out, and again where they are retried', async () => {
      const { store, consume } = await opened('g');
      const expected = Array.from({ length: 60 }, (_, index) => `${index} ${'x'.repeat(100_000)}`);
      for (const [index, name] of expected.entries()) await record(store, `transaction-${index}`, name);
      const puller = consume('g', 100);
      const retried = new Set<string>();
      const ended = new Set<string>();
      // Delivery is at least once: an event that waits on the connection for longer than its time-out comes again.
      while (ended.size < expected.length) {
        const event = await puller.next();
        const name = nameOf(event.event);
        if (retried.size < 20 && !retried.has(name)) {
          retried.add(name);
          await puller.consumer.retry(event, { reason: 'once more', delayMs: 0 });
        } else {
          ended.add(name);
          await puller.consumer.ack([event]);
        }
      }
      expect([...ended].sort()).toEqual([...expected].sort());
    });
  });

  describe('a replay', () => {
    test('hands out parked events with a retry count of 0, and no event that a consumer holds', async () => {
      const { store, subscriptions, consume } = await opened('g');
      await record(store, 'transaction-1', 'parked');
      const puller = consume('g');
      await puller.consumer.retry(await puller.next(), { reason: 'once more', delayMs: 0 });
      await puller.consumer.park(await puller.next(), 'parked');
      await record(store, 'transaction-2', 'held');
      await puller.next();
      await expect.poll(async () => (await subscriptions.parked('g')).length).toBe(1);
      expect(await subscriptions.replayParked('g')).toBe(1);
      expect(await puller.next()).toMatchObject({ event: { data: { name: 'parked' } }, retryCount: 0 });
      expect(await puller.isQuiet()).toBe(true);
    });
  });

  describe('two persistent subscriptions', () => {
    test('are independent of each other', async () => {
      const { store, subscriptions, pass, ackTimeoutMs, consume } = await opened('g', 'h');
      await record(store, 'transaction-1', 'a', 'b', 'c');
      const [one, other] = [consume('g'), consume('h')];
      const [a, b, c] = await one.take(3);
      const held = await other.take(3);
      expect(names(held)).toEqual(['a', 'b', 'c']);
      if (a === undefined || b === undefined || c === undefined) throw new Error('three were asked for');
      await one.consumer.ack([a]);
      await one.consumer.park(b, 'parked');
      await one.consumer.retry(c, { reason: 'once more', delayMs: 0 });
      expect((await one.next()).retryCount).toBe(1);
      expect(await other.isQuiet()).toBe(true);
      expect(await subscriptions.parked('h')).toEqual([]);
      expect(await subscriptions.replayParked('h')).toBe(0);
      await one.stop();
      await pass(ackTimeoutMs);
      const again = await other.take(3); // its own time-out has passed
      expect(again.map(({ retryCount }) => retryCount)).toEqual([1, 1, 1]);
      await other.consumer.ack(again);
      await pass(ackTimeoutMs);
      expect(await other.isQuiet()).toBe(true);
      expect(await subscriptions.parked('h')).toEqual([]);
    });
  });
}
