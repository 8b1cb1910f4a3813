import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../../src/engines/sqlite/event-store/event-store.ts';
import { leavesOutTransactions, readAllSql } from '../../../../src/engines/sqlite/event-store/log-reader.ts';
import { Unreadable } from '../../../../src/event-store/recorded-event.ts';
import { eventStoreContract } from '../../../contracts/event-store.contract.ts';
import { MemoryLog, openMemoryEventStore } from '../../../support/engines/memory-log.ts';
import { named, nameOf, record } from '../../../support/event-store/store-events.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

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
