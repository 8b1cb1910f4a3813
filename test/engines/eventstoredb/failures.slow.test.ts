import { describe, expect, onTestFinished, test } from 'vitest';
import type { EventStoreDb } from '../../../src/engines/eventstoredb/event-store.ts';
import type { SubscribeOptions, SubscriptionBatch } from '../../../src/event-store/event-store.ts';
import {
  ERASED_REVISION,
  isErasure,
  STREAM_ERASED,
  Unreadable,
} from '../../../src/event-store/recorded-event.ts';
import { restartableNode } from '../../support/event-store/eventstoredb-under-test.ts';
import { collect, named, nameOf, record } from '../../support/event-store/store-events.ts';
import { until, within } from '../../support/waiting.ts';

function subscribed(
  store: EventStoreDb,
  options: Partial<SubscribeOptions> = {},
): AsyncIterator<SubscriptionBatch> {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const all = { prefixes: [], after: 0, signal: end.signal, ...options };
  return store.subscribe(all)[Symbol.asyncIterator]();
}

describe('while a node is unavailable', () => {
  test('a subscription waits and continues without a gap or a repetition', async () => {
    const { double, store, restart } = await restartableNode();
    await record(store, 'account-1', 'a', 'b');
    const batches = subscribed(store);
    const before = await collect(batches, (names, last) => names.length === 2 && last.caughtUp);
    const next = collect(batches, (names) => names.length === 3);
    await double.stop();
    await restart();
    await record(store, 'account-1', 'c');
    await record(store, 'account-2', 'd', 'e');
    expect([...before.names, ...(await next).names]).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('a subscription yields nothing, and ends at once when it is aborted', async () => {
    const { double, store } = await restartableNode();
    const end = new AbortController();
    const batches = subscribed(store, { signal: end.signal });
    await batches.next();
    await double.stop();
    const next = batches.next();
    const silent = new Promise((resolve) => setTimeout(resolve, 1_200, 'silent'));
    expect(await Promise.race([next, silent])).toBe('silent');
    end.abort();
    expect(await within(next, 5_000, 'it did not end')).toMatchObject({ done: true });
  });

  test('reads and a ping reject with STORE_UNAVAILABLE', async () => {
    const { double, store } = await restartableNode();
    await record(store, 'account-1', 'a');
    await double.stop();
    const unavailable = { code: 'STORE_UNAVAILABLE' };
    await Promise.all([
      expect(store.ping()).rejects.toMatchObject(unavailable),
      expect(store.readStream('account-1')).rejects.toMatchObject(unavailable),
      expect(store.head()).rejects.toMatchObject(unavailable),
    ]);
  });

  test('a node that hangs is abandoned after seconds, and found again', async () => {
    const { double, store } = await restartableNode();
    const batches = subscribed(store);
    await batches.next();
    double.freeze();
    await expect(store.ping()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    double.thaw();
    await record(store, 'account-1', 'a');
    expect((await collect(batches, (names) => names.length === 1)).names).toEqual(['a']);
  });
});

test('an append with any revision whose answer is lost in a restart of the node is recorded once', async () => {
  const { double, store, restart } = await restartableNode();
  await record(store, 'account-1', 'first');
  double.leaveUnanswered(1);
  const appending = store.append([
    { stream: 'account-1', expected: 'any', events: [named('a'), named('b')] },
  ]);
  await until(async () => (await store.readStream('account-1')).length === 3);
  await double.stop(); // the node forgets the ids
  await restart();
  const [result] = await within(appending, 5_000, 'it waited for an answer on the connection that was cut');
  const events = await store.readStream('account-1');
  expect(events.map(nameOf)).toEqual(['first', 'a', 'b']);
  expect(result).toEqual({ kind: 'appended', revision: 2, position: events.at(-1)?.position });
});

describe('an event of the log', () => {
  const bytes = (text: string): Uint8Array => Buffer.from(text);

  test('that is not JSON is returned as unreadable, and ends no subscription', async () => {
    const { double, store } = await restartableNode();
    const type = 'AccountOpened';
    await double.record('account-1', { type, isJson: true, data: bytes('{"broken'), metadata: bytes('{}') });
    await double.record('account-1', { type, isJson: true, data: bytes('{}'), metadata: bytes('{"broken') });
    await double.record('account-1', { type, isJson: false, data: bytes('{}'), metadata: bytes('') });
    await record(store, 'account-1', 'after them');
    const batches = subscribed(store);
    const events = [];
    while (events.length < 4) events.push(...((await batches.next()).value as SubscriptionBatch).events);
    for (const [broken, badMetadata, binary, good] of [events, await store.readStream('account-1')]) {
      expect(broken?.data).toBeInstanceOf(Unreadable);
      expect(badMetadata?.metadata).toBeInstanceOf(Unreadable);
      expect(binary?.data).toBeInstanceOf(Unreadable);
      expect(good && nameOf(good)).toBe('after them');
    }
  });

  test('is followed, in an erased stream, by the event that marks the erasure', async () => {
    const { store } = await restartableNode();
    await record(store, 'transaction-1', 'a');
    await store.erase('transaction-1');
    const batches = subscribed(store, { prefixes: ['transaction-'] });
    const events = [];
    while (events.at(-1)?.type !== STREAM_ERASED) {
      events.push(...((await batches.next()).value as SubscriptionBatch).events);
    }
    expect(events.at(-1)).toMatchObject({ stream: 'transaction-1', revision: ERASED_REVISION });
    expect(events.at(-1)?.position).toBeLessThanOrEqual(await store.head());
  });

  test('of the type of an erasure, appended by a writer, is no erasure', async () => {
    const { double, store } = await restartableNode();
    await record(store, 'transaction-1', 'a');
    await double.record('transaction-1', {
      type: STREAM_ERASED,
      isJson: true,
      data: bytes('{}'),
      metadata: bytes(''),
    });
    const events = await store.readStream('transaction-1');
    expect(events.map(({ type, revision }) => [type, revision])[1]).toEqual([STREAM_ERASED, 1]);
    expect(events.map(isErasure)).toEqual([false, false]);
  });
});

test('a subscription has one live subscription on the server, and none when its reader has left it', async () => {
  const { double, store } = await restartableNode();
  await record(store, 'account-1', 'a');
  const batches = store.subscribe({ prefixes: [], after: 0, signal: new AbortController().signal });
  for await (const { caughtUp } of batches) if (caughtUp) break;
  await until(() => double.followers === 0);
  const followed = subscribed(store);
  await collect(followed, (_, last) => last.caughtUp);
  await until(() => double.followers === 1);
  expect(double.dropFollowers()).toBe(1);
  await collect(followed, (_, last) => last.caughtUp);
  await until(() => double.followers === 1);
});
