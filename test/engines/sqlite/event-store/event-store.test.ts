import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../../src/engines/sqlite/event-store/event-store.ts';
import { leavesOutTransactions, readAllSql } from '../../../../src/engines/sqlite/event-store/log-reader.ts';
import type { SubscriptionBatch } from '../../../../src/event-store/event-store.ts';
import { Unreadable } from '../../../../src/event-store/recorded-event.ts';
import { eventStoreContract } from '../../../contracts/event-store.contract.ts';
import { MemoryLog, openMemoryEventStore } from '../../../support/engines/memory-log.ts';
import { collect, named, nameOf, record } from '../../../support/event-store/store-events.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { within } from '../../../support/waiting.ts';

const APPENDER = join(import.meta.dirname, '../../../support/event-store/append-events.ts');

function openAt(path: string): SqliteEventStore {
  const store = openSqliteEventStore({ path, clock: systemClock });
  onTestFinished(() => store.close());
  return store;
}

/** Another connection to the file. */
function outsider(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  onTestFinished(() => db.close());
  return db;
}

async function appendElsewhere(path: string, stream: string, count: number): Promise<void> {
  await promisify(execFile)(process.execPath, [APPENDER, path, stream, String(count)]);
}

describe('in a file', () => {
  eventStoreContract(async () =>
    openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock: new FakeClock() }),
  );
});

describe('in memory', () => {
  eventStoreContract(async () => openMemoryEventStore(new MemoryLog(), new FakeClock()));
});

describe('the embedded event store', () => {
  test('refuses to change or delete an event, on any connection', async () => {
    const path = join(temporaryFolder(), 'events.db');
    const store = openAt(path);
    await record(store, 'account-1', 'a');
    const db = outsider(path);
    expect(() => db.exec("UPDATE events SET data = '{}'")).toThrow('events never change');
    expect(() => db.exec('DELETE FROM events')).toThrow('events stay');
    await store.erase('transaction-1');
    expect(() => db.exec('DELETE FROM erased_streams')).toThrow('stays erased');
    expect((await store.readStream('account-1')).map(nameOf)).toEqual(['a']);
  });

  test('leaves no trace of an erased event in its files', async () => {
    const folder = temporaryFolder();
    const store = openAt(join(folder, 'events.db'));
    await record(store, 'transaction-1', 'Sam Secretname');
    await record(store, 'transaction-2', 'stays');
    const traces = (): boolean =>
      readdirSync(folder).some((file) => readFileSync(join(folder, file)).includes('Sam Secretname'));
    expect(traces()).toBe(true);
    await store.erase('transaction-1');
    expect(traces()).toBe(false);
  });

  test('returns text that is not JSON as unreadable', async () => {
    const path = join(temporaryFolder(), 'events.db');
    const store = openAt(path);
    outsider(path).exec(
      `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata)
       VALUES ('account-1', 0, 'x', 'AccountOpened', 0, '{"broken', '{broken')`,
    );
    await record(store, 'account-2', 'after it');
    const [event] = await store.readStream('account-1');
    expect(event?.data).toBeInstanceOf(Unreadable);
    expect(event?.data).toMatchObject({ reason: expect.stringContaining('data is not JSON') });
    expect(event?.metadata).toMatchObject({ reason: expect.stringContaining('metadata is not JSON') });
    expect(store.readAll({ prefixes: [], after: 0, limit: 10 }).events).toHaveLength(2);
  });

  test('refuses an append without events', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    await expect(store.append([{ stream: 'account-1', expected: 'any', events: [] }])).rejects.toThrow(
      'at least one event',
    );
  });

  test('stamps events with the clock', async () => {
    const clock = new FakeClock();
    const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock });
    onTestFinished(() => store.close());
    await record(store, 'account-1', 'a');
    clock.advance(5);
    await record(store, 'account-1', 'b');
    const times = (await store.readStream('account-1')).map(({ recordedAtMs }) => recordedAtMs);
    expect(times).toEqual([clock.now() - 5, clock.now()]);
  });

  test('keeps a commit through a power cut: it is on disk before the append resolves', () => {
    const opening = vi.spyOn(DatabaseSync.prototype, 'exec');
    onTestFinished(() => opening.mockRestore());
    openAt(join(temporaryFolder(), 'events.db'));
    const connection = opening.mock.contexts[0] as DatabaseSync;
    expect(connection.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 }); // FULL
  });

  test('reports a conflict for an append with any revision of which only a later event is recorded', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const known = named('known');
    await store.append([{ stream: 'account-1', expected: 'none', events: [known] }]);
    const append = { stream: 'account-1', expected: 'any', events: [named('new'), known] } as const;
    expect(await store.append([append])).toEqual([{ kind: 'conflict', actual: 0 }]);
    expect((await store.readStream('account-1')).map(nameOf)).toEqual(['known']);
  });

  test('reports how far it has read, also over events that do not match, and never backwards', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    await record(store, 'account-1', 'a');
    const end = await record(store, 'transaction-1', 'b', 'c');
    const prefixes = ['account-'];
    expect(store.readAll({ prefixes, after: 0, limit: 5 })).toMatchObject({ position: end, caughtUp: true });
    expect(store.readAll({ prefixes: [], after: 0, limit: 2 })).toMatchObject({
      position: 2,
      caughtUp: false,
    });
    expect(store.readAll({ prefixes, after: end + 5, limit: 5 })).toEqual({
      events: [],
      position: end + 5,
      checkpoint: end + 5,
      caughtUp: true,
    });
  });

  test('scans ten times as many positions where it can leave out transactions', () => {
    const path = join(temporaryFolder(), 'events.db');
    const store = openAt(path);
    outsider(path).exec(
      `INSERT INTO events (position, stream, revision, id, type, recorded_at, data, metadata)
       VALUES (100001, 'account-1', 0, 'x', 'AccountOpened', 0, '{}', '{}')`,
    );
    const nothing = { events: [], caughtUp: false };
    const step = (prefixes: readonly string[]) => store.readAll({ prefixes, after: 0, limit: 5 });
    const readTo = (position: number) => ({ ...nothing, position, checkpoint: position });
    expect(step(['transaction-'])).toEqual(readTo(10_000));
    expect(step(['account-'])).toEqual(readTo(100_000));
    expect(step(['account-', 'transaction-'])).toEqual(readTo(10_000));
    const last = store.readAll({ prefixes: ['account-'], after: 100_000, limit: 5 });
    expect(last).toMatchObject({ events: [{ stream: 'account-1' }], position: 100_001, caughtUp: true });
  });

  test('reads in bounded steps where nothing matches', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const events = Array.from({ length: 10_500 }, () => named('a'));
    await store.append([{ stream: 'transaction-1', expected: 'none', events }]);
    const first = store.readAll({ prefixes: ['transaction-2'], after: 0, limit: 5 });
    expect(first).toEqual({ events: [], position: 10_000, checkpoint: 10_000, caughtUp: false });
    const second = store.readAll({ prefixes: ['transaction-2'], after: first.position, limit: 5 });
    expect(second).toEqual({ events: [], position: 10_500, checkpoint: 10_500, caughtUp: true });
  });
});

describe('the index without transaction events', () => {
  test('is used by a subscription to other streams', () => {
    const path = join(temporaryFolder(), 'events.db');
    openAt(path);
    const plan = outsider(path)
      .prepare(`EXPLAIN QUERY PLAN ${readAllSql(2, true)}`)
      .all(0, 9, 'account-', 'operations', 9)
      .map(({ detail }) => detail)
      .join('; ');
    expect(plan).toMatch(/^SEARCH events USING (COVERING )?INDEX other_events \(.*>\? AND .*<\?\)$/);
  });

  test('is used only where no prefix can match a transaction stream', () => {
    expect(leavesOutTransactions(['account-'])).toBe(true);
    expect(leavesOutTransactions(['account-', 'operations'])).toBe(true);
    expect(leavesOutTransactions([])).toBe(false);
    expect(leavesOutTransactions([''])).toBe(false);
    expect(leavesOutTransactions(['account-', 'trans'])).toBe(false);
    expect(leavesOutTransactions(['transaction-7'])).toBe(false);
  });
});

describe('subscriptions on the embedded event store', () => {
  const subscribed = (store: SqliteEventStore, batchSize?: number): AsyncGenerator<SubscriptionBatch> => {
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const { signal } = end;
    return store.subscribe({ prefixes: [], after: 0, signal, ...(batchSize && { batchSize }) });
  };

  test('report their position at once, and once a second while idle, whatever notifies them', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const batches = subscribed(store);
    const startMs = performance.now();
    await batches.next();
    expect(performance.now() - startMs).toBeLessThan(900);
    const idleMs = performance.now();
    const next = batches.next();
    await sleep(50);
    store.commits.notify(); // without an event
    await next;
    expect(performance.now() - idleMs).toBeGreaterThan(900);
  });

  test('read only when an event may have been recorded', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const batches = subscribed(store);
    await batches.next();
    await record(store, 'account-1', 'a');
    await batches.next();
    const reading = vi.spyOn(store, 'readAll');
    void batches.next();
    await sleep(100);
    expect(reading.mock.calls.length).toBeLessThan(5);
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

  test('end at once when the store is closed', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const batches = subscribed(store);
    await batches.next();
    const ended = expect(batches.next()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await store.close();
    await within(ended, 900, 'it waited for its next look');
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

  test('see an event of the same process within milliseconds', async () => {
    const store = openAt(join(temporaryFolder(), 'events.db'));
    const signal = AbortSignal.timeout(60_000);
    const batches = store.subscribe({ prefixes: [], after: 0, signal })[Symbol.asyncIterator]();
    await batches.next();
    const delaysMs: number[] = [];
    for (let round = 0; round < 21; round++) {
      const seen = collect(batches, (names) => names.length === 1);
      await record(store, 'account-1', 'a');
      const recordedMs = performance.now();
      await seen;
      delaysMs.push(performance.now() - recordedMs);
    }
    expect(delaysMs.sort((a, b) => a - b)[10]).toBeLessThan(15); // it would look every 20 ms
  });

  test('see an event of another process soon', async () => {
    const path = join(temporaryFolder(), 'events.db');
    const store = openAt(path);
    const signal = AbortSignal.timeout(60_000);
    const batches = store.subscribe({ prefixes: ['account-'], after: 0, signal })[Symbol.asyncIterator]();
    await batches.next();
    const elsewhere = appendElsewhere(path, 'account-1', 1);
    const { batches: read } = await collect(batches, (names) => names.length === 1);
    const recordedAtMs = read.flatMap(({ events }) => events)[0]?.recordedAtMs ?? 0;
    expect(Date.now() - recordedAtMs).toBeLessThan(450); // it would look every 500 ms
    await elsewhere;
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
