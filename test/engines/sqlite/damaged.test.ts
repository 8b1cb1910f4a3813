import { closeSync, openSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { backupFile } from '../../../src/engines/sqlite/copied-files.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { damagedFile } from '../../../src/engines/sqlite/driver/errors.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const OPTIONS = {
  migrations: ['CREATE TABLE things (name TEXT PRIMARY KEY, text TEXT) STRICT'],
  durability: 'normal',
} as const;
const PAGE_BYTES = 8192;

let path: string;

/** Makes a closed file of some hundred pages. */
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

const DAMAGES: readonly [string, () => void][] = [
  ['that is no database', () => writeFileSync(path, 'a letter to the operator'.repeat(1_000))],
  ['whose head is damaged', () => overwrite(0)],
  ['whose pages are damaged', () => overwrite(PAGE_BYTES)],
  ['that is cut short', () => truncateSync(path, statSync(path).size / 2)],
];

/** The error of opening a file that is damaged. */
const damaged = () =>
  expect.objectContaining({ code: 'STORE_DAMAGED', message: expect.stringContaining(path) });

describe('a file', () => {
  test.each(DAMAGES)('%s is not opened', (_, damage) => {
    damage();
    expect(() => new Database(path, OPTIONS)).toThrow(damaged());
  });

  test('that is large is not read through when it is opened: reading what is damaged fails', () => {
    overwrite(PAGE_BYTES);
    truncateSync(path, 20 * 1024 * 1024);
    const db = new Database(path, OPTIONS);
    onTestFinished(() => db.close());
    expect(() => db.prepare('SELECT name FROM things').all()).toThrow(damaged());
  });

  test.each(DAMAGES)('%s while it is open fails to be read', (_, damage) => {
    const db = new Database(path, { ...OPTIONS, cacheMiB: 0 });
    onTestFinished(() => db.close());
    damage();
    expect(() => db.prepare('SELECT name, text FROM things').all()).toThrow(damaged());
  });

  test('that is damaged is named in the error of its backup too', async () => {
    writeFileSync(path, 'a letter to the operator'.repeat(1_000));
    await expect(backupFile(path, `${path}.copy`)).rejects.toMatchObject({
      code: 'STORE_DAMAGED',
      message: expect.stringContaining(path),
    });
  });
});

const DELETED = 'transactions.db transactions-2.db subscriptions.db control.db accounts.db requests.db';

describe('the error of a damaged file', () => {
  const toldOf = (name: string) => damagedFile(join(dirname(path), name), 'why').message;

  test.each(DELETED.split(' '))('says that %s can be deleted, since the service rebuilds it', (name) => {
    const file = join(dirname(path), name);
    const told = toldOf(name);
    expect(told).toContain(`${file} is damaged (why): stop every process`);
    expect(told).toContain(`rm -f ${file} ${file}-wal ${file}-shm, and start again`);
    expect(told.includes('the log of requests')).toBe(name === 'requests.db');
  });

  test.each(['events.db', 'deliveries.db'])(
    'says that %s must be kept and restored from the backup',
    (name) => {
      expect(toldOf(name)).toContain('and keep them; then restore it from the backup');
      expect(toldOf(name)).not.toContain('rm ');
    },
  );
});

test('a command on a damaged file fails with the path of the file, and without a stack', async () => {
  const { fuel } = commandLine();
  await fuel('account', 'open', '7', '--name', 'x');
  const events = join(process.env.FUEL_DATA_DIR ?? '', 'events.db');
  writeFileSync(events, 'a letter to the operator'.repeat(1_000));
  const { code, stderr } = await fuel('account', 'list');
  expect(code).toBe(1);
  expect(stderr).toContain(`fuel: ${events} is damaged`);
  expect(stderr).not.toContain('    at ');
});
