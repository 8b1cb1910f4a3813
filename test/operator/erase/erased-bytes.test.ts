import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { type ErasedBytesOptions, removeErasedBytes } from '../../../src/operator/erase/erased-bytes.ts';
import { openFiles } from '../../support/interposed.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const MARK = 'Sam Erased-Field';
const ROWS = 400;
const OPTIONS = { databases: ['records.db'], texts: [MARK], withinMs: 300, compact: false };
const migrations = ['CREATE TABLE records (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT'];

/** A folder with one embedded file, of whose rows the one in the middle holds the mark. */
function stored() {
  const folder = temporaryFolder();
  const path = join(folder, 'records.db');
  const db = new Database(path, { migrations, durability: 'normal' });
  onTestFinished(() => db.close());
  const insert = db.prepare('INSERT INTO records VALUES (?, ?)');
  // Not in the order of their ids: pages fill up and are split, and rows are moved.
  const ids = Array.from({ length: ROWS }, (_, n) => (n * 173) % ROWS);
  for (const id of ids)
    insert.run(id, id === ROWS / 2 ? `${MARK} `.repeat(60) : `row ${id} `.repeat(100 + (id % 90)));
  const remove = (options: Partial<ErasedBytesOptions> = {}) =>
    removeErasedBytes({ ...OPTIONS, folder, ...options });
  const erase = () => db.prepare('DELETE FROM records WHERE id = ?').run(ROWS / 2);
  return { folder, path, db, erase, remove };
}

function holders(folder: string): string[] {
  return readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(MARK));
}

test('no file contains what was erased, though it was in the log and in pages that were split', async () => {
  const { folder, db, erase, remove } = stored();
  expect(holders(folder)).not.toEqual([]);
  erase();
  expect(holders(folder)).toContain('records.db-wal');
  expect(await remove()).toEqual([]);
  expect(holders(folder)).toEqual([]);
  expect(db.prepare('SELECT count(*) AS count FROM records').get()).toEqual({ count: ROWS - 1 });
});

test('a file with pages that were not overwritten is rewritten', async () => {
  const { folder, path, remove } = stored();
  const careless = new DatabaseSync(path);
  careless.exec('PRAGMA secure_delete = OFF; DELETE FROM records; PRAGMA wal_checkpoint(TRUNCATE)');
  careless.close();
  expect(holders(folder)).toContain('records.db');
  expect(await remove()).toEqual([]);
  expect(holders(folder)).toEqual([]);
});

test('while a process reads, the log that it needs is reported; afterwards nothing is left', async () => {
  const { folder, path, erase, remove } = stored();
  const reader = new DatabaseSync(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM records').get();
  erase();
  expect(await remove()).toEqual([
    {
      file: `${path}-wal`,
      reason: 'it could not be emptied: another process is reading it or writing to it',
    },
  ]);
  reader.exec('COMMIT');
  reader.close();
  expect(await remove()).toEqual([]);
  expect(holders(folder)).toEqual([]);
});

test('any other file of the folder that contains the text is reported', async () => {
  const { folder, erase, remove } = stored();
  erase();
  mkdirSync(join(folder, 'copies'));
  const copy = join(folder, 'copies', 'copy.txt');
  // Across the end of what is read at once.
  writeFileSync(copy, Buffer.concat([Buffer.alloc(4 * 1024 * 1024 - 5), Buffer.from(MARK)]));
  expect(await remove()).toEqual([{ file: copy, reason: 'it holds the record' }]);
});

test('a file that does not exist is not created', async () => {
  const folder = temporaryFolder();
  expect(await removeErasedBytes({ ...OPTIONS, folder })).toEqual([]);
  expect(existsSync(join(folder, 'records.db'))).toBe(false);
});

test('a folder that does not exist holds nothing', async () => {
  const folder = join(temporaryFolder(), 'never-made');
  expect(await removeErasedBytes({ ...OPTIONS, folder })).toEqual([]);
  expect(existsSync(folder)).toBe(false);
});

test('a writer is waited for, and a file that is no database is reported at once', async () => {
  const { folder, path, erase, remove } = stored();
  erase();
  const writer = new DatabaseSync(path);
  onTestFinished(() => writer.close());
  writer.exec('BEGIN IMMEDIATE');
  setTimeout(() => writer.exec('ROLLBACK'), 150); // after the first try, which blocks for 100 ms
  expect(await remove({ withinMs: 10_000 })).toEqual([]);
  writeFileSync(join(folder, 'other.db'), 'no database'.repeat(100));
  const [fault, ...more] = await remove({ databases: ['other.db'], withinMs: 60_000 });
  expect([fault?.file, fault?.reason]).toEqual([
    join(folder, 'other.db'),
    'it could not be rewritten: file is not a database',
  ]);
  expect(more).toMatchObject([{ file: `${join(folder, 'other.db')}-wal` }]);
});

test('no file is left open, and one that was removed while others were searched is not missed', async () => {
  const { folder, path, db, erase, remove } = stored();
  erase();
  db.close();
  const [first, last] = [join(folder, 'a'), join(folder, 'z')];
  for (const file of [first, last]) writeFileSync(file, '');
  truncateSync(first, 64 * 1024 * 1024); // takes no room, and longer to read than to look at
  const removing = remove();
  while (openFiles(first) === 0) await nextTurn();
  rmSync(last);
  expect(await removing).toEqual([]);
  expect([openFiles(path), openFiles(first)]).toEqual([0, 0]);
});

test('a large file is rewritten only where that is asked for', async () => {
  const { folder, path, db, remove } = stored();
  db.close();
  const careless = new DatabaseSync(path);
  careless.exec('PRAGMA secure_delete = OFF; DELETE FROM records; PRAGMA wal_checkpoint(TRUNCATE)');
  careless.close();
  truncateSync(path, 65 * 1024 * 1024);
  expect(await remove()).toEqual([{ file: path, reason: 'it holds the record' }]);
  expect(await remove({ compact: true })).toEqual([]);
  expect(statSync(path).size).toBeLessThan(1024 * 1024);
  expect(holders(folder)).toEqual([]);
});
