import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type { GroupEvent } from '../../src/event-store/event-store.ts';
import { persistentSubscriptionsContract } from '../contracts/persistent-subscriptions.contract.ts';
import { persistentSubscriptionsBufferContract } from '../contracts/persistent-subscriptions-buffer.contract.ts';
import { startEventStoreDbDouble } from '../support/eventstoredb-double/eventstoredb-double.ts';
import { eventStoreDbAt, groupsAt, groupsOnDouble } from '../support/eventstoredb-under-test.ts';
import { nameOf, record } from '../support/store-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const realUrl = inject('eventstoreUrl');

describe('on the double', () => {
  persistentSubscriptionsContract(groupsOnDouble);
  persistentSubscriptionsBufferContract(groupsOnDouble);
});

describe.runIf(realUrl !== undefined)('on a real EventStoreDB', () => {
  persistentSubscriptionsContract(() => groupsAt(realUrl ?? ''));
  persistentSubscriptionsBufferContract(() => groupsAt(realUrl ?? ''));
});

describe('a group on EventStoreDB', () => {
  const SETTINGS = { prefixes: ['transaction-'], ackTimeoutMs: 1_000, maxRetries: 100 };

  async function opened() {
    const folder = temporaryFolder();
    const running = { double: await startEventStoreDbDouble({ folder }) };
    const { port, url } = running.double;
    const store = eventStoreDbAt(url);
    const end = new AbortController();
    onTestFinished(async () => {
      end.abort();
      await store.close();
      await running.double.stop();
    });
    const subscriptions = store.subscriptions();
    await subscriptions.ensureGroup('g', SETTINGS);
    const consumer = subscriptions.consume('g', { bufferSize: 2, signal: end.signal });
    const events = consumer[Symbol.asyncIterator]();
    const next = async (): Promise<GroupEvent> => (await events.next()).value;
    const restart = async (): Promise<void> => {
      await running.double.stop();
      running.double = await startEventStoreDbDouble({ folder, port });
    };
    return { running, store, subscriptions, consumer, next, restart };
  }

  test('goes on by itself when its node was killed and is back', async () => {
    const { store, consumer, next, restart } = await opened();
    await record(store, 'transaction-1', 'a');
    await consumer.ack([await next()]);
    const coming = next();
    await restart();
    await record(store, 'transaction-2', 'b');
    let event = await coming;
    while (nameOf(event.event) === 'a') event = await next(); // its acknowledgement may be lost
    expect(nameOf(event.event)).toBe('b');
  });

  test('holds an event for longer than its time-out, once, and lets the others through', async () => {
    const { store, consumer, next } = await opened();
    await record(store, 'transaction-1', 'late');
    const startMs = performance.now();
    await consumer.retry(await next(), { reason: 'not yet', delayMs: 2_200 });
    await record(store, 'transaction-2', 'b', 'c', 'd');
    const names: string[] = [];
    let event = await next();
    for (; nameOf(event.event) !== 'late'; event = await next()) {
      names.push(nameOf(event.event));
      await consumer.ack([event]);
    }
    expect(names).toEqual(['b', 'c', 'd']);
    expect(event.retryCount).toBe(1);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(2_190);
  });

  test('is refused with other prefixes than it was made with', async () => {
    const { subscriptions, running } = await opened();
    const filter = { context: 'streamid', type: 'prefix', data: 'transaction-' };
    // The real server keeps its groups' filters in this stream.
    await running.double.record('$persistentSubscriptionConfig', {
      type: 'PersistentConfig1',
      isJson: true,
      data: Buffer.from(JSON.stringify({ entries: [{ stream: '$all', group: 'g', filter }] })),
      metadata: new Uint8Array(),
    });
    await subscriptions.ensureGroup('g', SETTINGS);
    const others = { ...SETTINGS, prefixes: ['account-'] };
    await expect(subscriptions.ensureGroup('g', others)).rejects.toMatchObject({ code: 'REFUSED' });
  });

  test('that was never made is refused', async () => {
    const { subscriptions } = await opened();
    const { signal } = new AbortController();
    const consumer = subscriptions.consume('other', { bufferSize: 1, signal });
    await expect(consumer[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'REFUSED' });
  });

  test('does not hand out the event that stands for an erasure', async () => {
    const { store, next } = await opened();
    await store.erase('transaction-1');
    await record(store, 'transaction-2', 'b');
    expect(nameOf((await next()).event)).toBe('b');
  });
});
