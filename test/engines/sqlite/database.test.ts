import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Database, type OpenOptions } from '../../../src/engines/sqlite/driver/database.ts';
import { inspectFile } from '../../../src/engines/sqlite/driver/inspect-file.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const MIGRATIONS = ['CREATE TABLE things (name TEXT PRIMARY KEY) STRICT'];

function openAt(path: string, options: Partial<OpenOptions> = {}): Database {
  const db = new Database(path, { migrations: MIGRATIONS, durability: 'normal', ...options });
  onTestFinished(() => db.close());
  return db;
}

function opened(options: Partial<OpenOptions> = {}): { path: string; db: Database } {
  const path = join(temporaryFolder(), 'things.db');
  return { path, db: openAt(path, options) };
}

/** The connection of another process. */
function outsider(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  onTestFinished(() => db.close());
  return db;
}

/** Makes the first migration at the same time as others, and takes a while for it. */
const SLOW_OPENER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const db = new (require('node:sqlite').DatabaseSync)(workerData.path);
  db.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; PRAGMA user_version = 1;' + workerData.migration);
  parentPort.postMessage('locked');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  db.exec('COMMIT');
  db.close();
`;

const add = (db: Database, name: string) => db.prepare('INSERT INTO things VALUES (?)').run(name);
const namesIn = (db: Database) =>
  db
    .prepare('SELECT name FROM things ORDER BY name')
    .all()
    .map(({ name }) => name);

describe('a write', () => {
  test('waits for another process that writes, without blocking the event loop', async () => {
    const { path, db } = opened();
    const other = outsider(path);
    other.exec("BEGIN IMMEDIATE; INSERT INTO things VALUES ('theirs')");
    const written = db.write(() => add(db, 'ours'));
    const startMs = performance.now();
    await sleep(10);
    expect(performance.now() - startMs).toBeLessThan(900); // a reader would wait for a second
    expect(namesIn(db)).toEqual([]);
    other.exec('COMMIT');
    const freeMs = performance.now();
    await written;
    expect(performance.now() - freeMs).toBeLessThan(5_000);
    expect(namesIn(db)).toEqual(['ours', 'theirs']);
  });

  test('holds the write lock from its beginning, so that what it has read is still true when it writes', async () => {
    const { path, db } = opened();
    const other = outsider(path);
    await db.write(() => {
      namesIn(db);
      expect(() => other.exec("INSERT INTO things VALUES ('theirs')")).toThrow('locked');
      add(db, 'ours');
    });
    other.exec("INSERT INTO things VALUES ('theirs')");
    expect(namesIn(db)).toEqual(['ours', 'theirs']);
  });

  test('rejects with STORE_BUSY where the lock is held for more than 30 seconds, not before', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { path, db } = opened();
    const other = outsider(path);
    other.exec('BEGIN IMMEDIATE');
    let isSettled = false;
    const written = db
      .write(() => add(db, 'ours'))
      .finally(() => {
        isSettled = true;
      });
    const outcome = expect(written).rejects.toMatchObject({
      code: 'STORE_BUSY',
      message: expect.stringContaining('30 s'),
    });
    vi.advanceTimersByTime(29_900);
    await sleep(50);
    expect(isSettled).toBe(false);
    vi.advanceTimersByTime(200);
    await outcome;
    other.exec('COMMIT');
    expect(namesIn(db)).toEqual([]);
    await db.write(() => add(db, 'later'));
  });

  test('that throws is rolled back, and the next one works', async () => {
    const { db } = opened();
    const failing = db.write(() => {
      add(db, 'half');
      throw new RangeError('in the middle');
    });
    await expect(failing).rejects.toThrow('in the middle');
    expect(namesIn(db)).toEqual([]);
    await db.write(() => add(db, 'whole'));
    expect(namesIn(db)).toEqual(['whole']);
    // Readers wait while another process recovers the log after a crash.
    expect(db.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 1_000 });
  });

  test('rejects with the error where it cannot begin, instead of waiting', async () => {
    const { db } = opened();
    db.exec('BEGIN');
    await expect(db.write(() => add(db, 'nested'))).rejects.toThrow('within a transaction');
    db.exec('ROLLBACK');
  });
});

describe('a read', () => {
  test('sees one snapshot of the file, and does not wait for a writer', async () => {
    const { path, db } = opened();
    await db.write(() => add(db, 'a'));
    const other = outsider(path);
    const names = db.read(() => {
      const before = namesIn(db);
      other.exec("INSERT INTO things VALUES ('b')");
      return [before, namesIn(db)];
    });
    expect(names).toEqual([['a'], ['a']]);
    other.exec('BEGIN IMMEDIATE');
    expect(db.read(() => namesIn(db))).toEqual(['a', 'b']);
  });

  test('that throws ends its transaction', () => {
    const { db } = opened();
    const failing = () =>
      db.read(() => {
        throw new RangeError('in the middle');
      });
    expect(failing).toThrow('in the middle');
    expect(db.read(() => namesIn(db))).toEqual([]);
  });
});

describe('the data version', () => {
  test('changes with a commit of another connection, and not with its own', async () => {
    const { path, db } = opened();
    const version = db.dataVersion();
    await db.write(() => add(db, 'ours'));
    expect(db.dataVersion()).toBe(version);
    outsider(path).exec("INSERT INTO things VALUES ('theirs')");
    expect(db.dataVersion()).not.toBe(version);
  });
});

describe('migrations', () => {
  const second = "INSERT INTO things VALUES ('of the second step')";
  const versionOf = (path: string) => outsider(path).prepare('PRAGMA user_version').get()?.user_version;

  test('run once each, also those added later', () => {
    const { path } = opened();
    expect(versionOf(path)).toBe(1);
    for (let time = 0; time < 2; time++) {
      const db = openAt(path, { migrations: [...MIGRATIONS, second] });
      expect(namesIn(db)).toEqual(['of the second step']);
      expect(versionOf(path)).toBe(2);
    }
  });

  test('run all or none', () => {
    const path = join(temporaryFolder(), 'things.db');
    expect(() => openAt(path, { migrations: [...MIGRATIONS, 'no SQL'] })).toThrow('syntax error');
    expect(versionOf(path)).toBe(0);
    expect(namesIn(openAt(path))).toEqual([]);
  });

  test('wait for another process that is migrating, and keep its result', async () => {
    const path = join(temporaryFolder(), 'things.db');
    const slow = new Worker(SLOW_OPENER, { eval: true, workerData: { path, migration: MIGRATIONS[0] } });
    onTestFinished(async () => {
      await slow.terminate();
    });
    await once(slow, 'message');
    const db = openAt(path);
    expect(versionOf(path)).toBe(1);
    expect(namesIn(db)).toEqual([]);
  });

  test('of a newer program are refused, with what to do', () => {
    const { path } = opened();
    outsider(path).exec('PRAGMA user_version = 3');
    expect(() => openAt(path)).toThrow(
      expect.objectContaining({
        code: 'STORE_NEWER',
        message: expect.stringMatching(/has version 3, and this program knows 1. Run the newer program/),
      }),
    );
    expect(versionOf(path)).toBe(3);
  });
});

describe('a file', () => {
  const pragma = (db: Database, name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];

  test('is synced with every commit only where commits must survive a power cut', () => {
    expect(pragma(opened({ durability: 'full' }).db, 'synchronous')).toBe(2);
    expect(pragma(opened({ durability: 'normal' }).db, 'synchronous')).toBe(1);
  });

  test('keeps its write-ahead log short, however much is written', async () => {
    const { path, db } = opened();
    const text = 'x'.repeat(1_000_000);
    for (let n = 0; n < 32; n++) await db.write(() => add(db, `${n} ${text}`));
    expect(statSync(`${path}-wal`).size).toBeLessThan(24_000_000);
    expect(readFileSync(path).readUInt16BE(16)).toBe(8_192); // the page size, by which the limits are counted
  });

  test('that was closed throws STORE_CLOSED from every method, and can be closed again', async () => {
    const { path, db } = opened();
    expect(db.isOpen).toBe(true);
    db.close();
    db.close();
    expect(db.isOpen).toBe(false);
    const closed = expect.objectContaining({ code: 'STORE_CLOSED', message: expect.stringContaining(path) });
    expect(() => db.prepare('SELECT 1')).toThrow(closed);
    expect(() => db.exec('SELECT 1')).toThrow(closed);
    expect(() => db.read(() => 1)).toThrow(closed);
    expect(() => db.dataVersion()).toThrow(closed);
    await expect(db.write(() => 1)).rejects.toEqual(closed);
  });
});

describe('a look at a file', () => {
  test('tells its version and whether it is whole, and reads a large one not through', () => {
    const { path } = opened();
    expect(inspectFile(path, { maxCheckedBytes: 1_000_000 })).toEqual({
      version: 1,
      damage: null,
      isReadOnly: false,
    });
    expect(inspectFile(path, { maxCheckedBytes: 0 })).toEqual({
      version: 1,
      damage: undefined,
      isReadOnly: false,
    });
  });

  test('makes none that is missing', () => {
    const path = join(temporaryFolder(), 'missing.db');
    expect(() => inspectFile(path, { maxCheckedBytes: 0 })).toThrow();
    expect(existsSync(path)).toBe(false);
  });
});
