import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../../src/engines/sqlite/event-store/event-store.ts';
import type { SubscriptionBatch } from '../../../../src/event-store/event-store.ts';
import { collect, record } from '../../../support/event-store/store-events.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const APPENDER = join(import.meta.dirname, '../../../support/event-store/append-events.ts');

function openAt(path: string): SqliteEventStore {
  const store = openSqliteEventStore({ path, clock: systemClock });
  onTestFinished(() => store.close());
  return store;
}

async function appendElsewhere(path: string, stream: string, count: number): Promise<void> {
  await promisify(execFile)(process.execPath, [APPENDER, path, stream, String(count)]);
}

describe('subscriptions on the embedded event store', () => {
  const subscribed = (store: SqliteEventStore, batchSize?: number): AsyncGenerator<SubscriptionBatch> => {
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const { signal } = end;
    return store.subscribe({ prefixes: [], after: 0, signal, ...(batchSize && { batchSize }) });
  };

  /** Stops the clock and the timers of this process. */
  function stopTime(): void {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'hrtime'] });
    onTestFinished(() => void vi.useRealTimers());
  }

  /** Returns true if this ends within some turns of the event loop. `each` is called in each turn. */
  async function endsSoon(work: Promise<unknown>, each: () => Promise<unknown> = async () => {}) {
    let hasEnded = false;
    void work.then(() => {
      hasEnded = true;
    });
    for (let turn = 0; turn < 100 && !hasEnded; turn++) {
      await nextTurn();
      await each();
    }
    return hasEnded;
  }

  test('report their position at once, and once a second while idle, whatever notifies them', async () => {
    stopTime();
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const batches = subscribed(store);
    await batches.next();
    const idleMs = performance.now();
    const next = batches.next().then(() => performance.now() - idleMs);
    await vi.advanceTimersByTimeAsync(50);
    store.commits.notify(); // without an event
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await next).toBe(1_000);
  });

  test('read only when an event may have been recorded', async () => {
    stopTime();
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const batches = subscribed(store);
    await batches.next();
    await record(store, 'account-1', 'a');
    await batches.next();
    const reading = vi.spyOn(store, 'readAll');
    void batches.next();
    await vi.advanceTimersByTimeAsync(900);
    expect(reading).not.toHaveBeenCalled();
  });

  test('give the event loop a turn between two batches', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    await record(store, 'account-1', ...Array.from({ length: 20 }, (_, n) => `${n}`));
    let turns = 0;
    const turn = (): NodeJS.Immediate => setImmediate(() => ++turns < 1_000 && turn());
    turn();
    await collect(subscribed(store, 1), (names) => names.length === 20);
    expect(turns).toBeGreaterThanOrEqual(19);
    turns = 1_000;
  });

  test('yield hundreds of events at a time, not the whole log', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    await record(store, 'account-1', ...Array.from({ length: 1_201 }, (_, n) => `${n}`));
    const { batches } = await collect(subscribed(store), (names) => names.length === 1_201);
    expect(batches.map(({ events }) => events.length)).toEqual([500, 500, 201]);
  });

  test('leave nothing behind when they end', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const [adding, removing] = [vi.spyOn(store.commits, 'add'), vi.spyOn(store.commits, 'remove')];
    const batches = subscribed(store);
    await batches.next();
    await batches.return(undefined);
    expect(adding).toHaveBeenCalledTimes(1);
    expect(removing.mock.calls).toEqual(adding.mock.calls);
  });

  test('see an event of the same process without waiting for their next look', async () => {
    stopTime();
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const batches = subscribed(store);
    await batches.next();
    const seen = collect(batches, (names) => names.length === 1);
    await record(store, 'account-1', 'a');
    expect(await endsSoon(seen)).toBe(true);
  });

  test('see an event of another process soon', async () => {
    stopTime();
    const path = join(temporaryFolder(), 'events.db');
    const batches = subscribed(openAt(path));
    await batches.next();
    const seen = collect(batches, (names) => names.length === 1);
    await appendElsewhere(path, 'account-1', 1);
    expect(await endsSoon(seen, () => vi.advanceTimersByTimeAsync(4))).toBe(true); // it would look every 500 ms
  });

  test('see every event of several processes that append at once', async () => {
    const path = join(temporaryFolder(), 'events.db');
    const store = openAt(path);
    const signal = AbortSignal.timeout(15_000);
    const batches = store.subscribe({ prefixes: [], after: 0, signal })[Symbol.asyncIterator]();
    const reading = collect(batches, (names) => names.length === 150);
    const streams = ['account-1', 'transaction-1', 'account-3'];
    await Promise.all(streams.map((stream) => appendElsewhere(path, stream, 50)));
    const { names } = await reading;
    for (const stream of streams) {
      const own = names.filter((name) => name.startsWith(stream));
      expect(own).toEqual(Array.from({ length: 50 }, (_, index) => `${stream} ${index}`));
    }
  });
});

test('a subscription that waits when its store is closed is refused at once', async () => {
  const store = openAt(join(temporaryFolder(), 'events.db'));
  const { signal } = new AbortController();
  const batches = store.subscribe({ prefixes: [], after: 0, signal });
  await batches.next();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }); // so that no heartbeat wakes it
  onTestFinished(() => void vi.useRealTimers());
  const next = expect(batches.next()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  await store.close();
  await next;
  expect(vi.getTimerCount()).toBe(0);
});
