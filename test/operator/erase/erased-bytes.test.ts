import { existsSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { removeErasedBytes } from '../../../src/operator/erase/erased-bytes.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { holders } from '../../support/holders.ts';
import { openFiles } from '../../support/interposed.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { viewInFolder } from '../../support/transactions/open-view.ts';

const MARK = 'Sam Erased-Field';
const ROWS = 400;
const ALL = ['store', 'view', 'queue'] as const;
const BUSY = 'another process uses it. Run the same command again when the service is less busy, or stopped';
const migrations = ['CREATE TABLE records (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT'];

/** A folder with the file of the deliveries, of whose rows the one in the middle holds the mark. */
function stored() {
  const folder = temporaryFolder();
  const path = join(folder, 'deliveries.db');
  const db = new Database(path, { migrations, durability: 'normal' });
  onTestFinished(() => db.close());
  const insert = db.prepare('INSERT INTO records VALUES (?, ?)');
  // Not in the order of their ids: pages fill up and are split, and rows are moved.
  const ids = Array.from({ length: ROWS }, (_, n) => (n * 173) % ROWS);
  for (const id of ids)
    insert.run(id, id === ROWS / 2 ? `${MARK} `.repeat(60) : `row ${id} `.repeat(100 + (id % 90)));
  const remove = (withinMs = 300) =>
    removeErasedBytes({ embedded: ALL, view: () => viewOf(folder) }, { folder, withinMs });
  const erase = () => db.prepare('DELETE FROM records WHERE id = ?').run(ROWS / 2);
  return { folder, path, db, erase, remove };
}

function viewOf(folder: string) {
  const view = viewInFolder(folder, new FakeClock());
  onTestFinished(() => view.close());
  return view;
}

test('no file contains what was erased, though it was in the log and in pages that were split', async () => {
  const { folder, db, erase, remove } = stored();
  expect(holders(folder, MARK)).not.toEqual([]);
  erase();
  expect(holders(folder, MARK)).toContain('deliveries.db-wal');
  expect(await remove()).toEqual([]);
  expect(holders(folder, MARK)).toEqual([]);
  expect(db.prepare('SELECT count(*) AS count FROM records').get()).toEqual({ count: ROWS - 1 });
});

test('a file with pages that were not overwritten is rewritten', async () => {
  const { folder, path, remove } = stored();
  const careless = new DatabaseSync(path);
  careless.exec('PRAGMA secure_delete = OFF; DELETE FROM records; PRAGMA wal_checkpoint(TRUNCATE)');
  careless.close();
  expect(holders(folder, MARK)).toContain('deliveries.db');
  expect(await remove()).toEqual([]);
  expect(holders(folder, MARK)).toEqual([]);
});

test('while a process reads, the log that it needs is reported each time; afterwards nothing is left', async () => {
  const { folder, path, erase, remove } = stored();
  const reader = new DatabaseSync(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM records').get();
  erase();
  const busy = [{ file: `${path}-wal`, reason: `it could not be emptied: ${BUSY}` }];
  expect([await remove(), await remove()]).toEqual([busy, busy]);
  reader.exec('COMMIT');
  reader.close();
  expect(await remove()).toEqual([]);
  expect(holders(folder, MARK)).toEqual([]);
});

test('a copy that somebody made is left alone and not reported', async () => {
  const { folder, erase, remove } = stored();
  writeFileSync(join(folder, 'old-copy.bin'), MARK);
  erase();
  expect(await remove()).toEqual([]);
  expect(holders(folder, MARK)).toEqual(['old-copy.bin']);
});

test('a file of the service that no store uses any more is reported each time until it is removed', async () => {
  const { folder, path, remove } = stored();
  const view = viewOf(folder);
  await view.reset('store-1', 0);
  for (const name of ['events.db', 'transactions-2.db']) writeFileSync(join(folder, name), '');
  const unused = (name: string) => ({
    file: join(folder, name),
    reason: 'the service no longer uses the file. Remove it',
  });
  expect(await remove()).toEqual([unused('transactions-2.db')]);
  const onServers = { embedded: [], view: () => view };
  expect(await removeErasedBytes(onServers, { folder })).toEqual([
    ...['events.db', 'transactions.db', 'transactions-1.db', 'transactions-2.db', 'deliveries.db'].map(
      unused,
    ),
  ]);
  expect(existsSync(path)).toBe(true);
});

test('a file that does not exist is not created', async () => {
  const folder = temporaryFolder();
  expect(await removeErasedBytes({ embedded: ALL, view: () => viewOf(folder) }, { folder })).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

test('a folder that does not exist holds nothing', async () => {
  const folder = join(temporaryFolder(), 'never-made');
  expect(await removeErasedBytes({ embedded: ALL, view: () => viewOf(folder) }, { folder })).toEqual([]);
  expect(existsSync(folder)).toBe(false);
});

test('a writer is waited for, and a file that is no database is reported at once', async () => {
  const { folder, path, erase, remove } = stored();
  erase();
  const writer = new DatabaseSync(path);
  onTestFinished(() => writer.close());
  writer.exec('BEGIN IMMEDIATE');
  setTimeout(() => writer.exec('ROLLBACK'), 150); // after the first try, which blocks for 100 ms
  expect(await remove(10_000)).toEqual([]);
  writeFileSync(join(folder, 'events.db'), 'no database'.repeat(100));
  const again = 'file is not a database. Run the same command again';
  expect(await remove(60_000)).toEqual([
    { file: join(folder, 'events.db'), reason: `it could not be rewritten: ${again}` },
    { file: join(folder, 'events.db-wal'), reason: `it could not be emptied: ${again}` },
  ]);
});

test('no file is left open', async () => {
  const { path, db, erase, remove } = stored();
  erase();
  db.close();
  expect(await remove()).toEqual([]);
  expect(openFiles(path)).toBe(0);
});

test('a file of any size is rewritten', async () => {
  const { folder, path, db, remove } = stored();
  db.close();
  const careless = new DatabaseSync(path);
  careless.exec('PRAGMA secure_delete = OFF; DELETE FROM records; PRAGMA wal_checkpoint(TRUNCATE)');
  careless.close();
  truncateSync(path, 65 * 1024 * 1024);
  expect(holders(folder, MARK)).toEqual(['deliveries.db']);
  expect(await remove()).toEqual([]);
  expect(statSync(path).size).toBeLessThan(1024 * 1024);
  expect(holders(folder, MARK)).toEqual([]);
});
