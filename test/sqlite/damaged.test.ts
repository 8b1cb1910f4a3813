import { closeSync, openSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { FuelError } from '../../src/errors.ts';
import { backupFile, Database } from '../../src/sqlite/database.ts';
import { commandLine } from '../support/service/command-line.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const OPTIONS = {
  migrations: ['CREATE TABLE things (name TEXT PRIMARY KEY, text TEXT) STRICT'],
  durability: 'normal',
} as const;
const PAGE_BYTES = 8192;

let path: string;

/** A file of some hundred pages, closed. */
beforeEach(() => {
  path = join(temporaryFolder(), 'things.db');
  const db = new Database(path, OPTIONS);
  const add = db.prepare('INSERT INTO things VALUES (?, ?)');
  db.exec('BEGIN');
  for (let n = 0; n < 1_000; n++) add.run(`thing ${n}`, 'x'.repeat(1_000));
  db.exec('COMMIT');
  db.close();
});

function overwrite(fromByte: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(PAGE_BYTES * 4, 'damage '), 0, PAGE_BYTES * 4, fromByte);
  closeSync(file);
}

/** What reading all of it fails with. */
function faultOf(): FuelError {
  let db: Database | undefined;
  try {
    db = new Database(path, OPTIONS);
    db.prepare('SELECT name, text FROM things ORDER BY name').all();
    db.prepare('PRAGMA integrity_check').all();
  } catch (error) {
    if (error instanceof FuelError) return error;
    throw error;
  } finally {
    db?.close();
  }
  throw new Error('it was read');
}

describe('a file', () => {
  test.each([
    ['that is no database', () => writeFileSync(path, 'a letter to the operator'.repeat(1_000))],
    ['whose head is damaged', () => overwrite(0)],
    ['whose pages are damaged', () => overwrite(PAGE_BYTES)],
    ['that is cut short', () => truncateSync(path, statSync(path).size / 2)],
  ])('%s is named with its path, and what to do', (_, damage) => {
    damage();
    const { code, message } = faultOf();
    expect(code).toBe('STORE_DAMAGED');
    expect(message).toContain(`${path} is damaged`);
    expect(message).toContain('docs/operations/troubleshooting.md');
  });

  test('that is damaged is named in the error of its backup too', async () => {
    writeFileSync(path, 'a letter to the operator'.repeat(1_000));
    await expect(backupFile(path, `${path}.copy`)).rejects.toMatchObject({
      code: 'STORE_DAMAGED',
      message: expect.stringContaining(path),
    });
  });
});

test('a command on a damaged file fails with the path of the file, and without a stack', async () => {
  const { fuel } = commandLine();
  await fuel('account', 'open', '7', '--name', 'x');
  const events = join(process.env.FUEL_DATA_DIR ?? '', 'events.db');
  writeFileSync(events, 'a letter to the operator'.repeat(1_000));
  const { code, stderr } = await fuel('account', 'list');
  expect(code).toBe(1);
  expect(stderr).toContain(`fuel: STORE_DAMAGED: ${events} is damaged`);
  expect(stderr).not.toContain('    at ');
});
