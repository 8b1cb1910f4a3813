import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readlinkSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { backupFile } from '../../../src/engines/sqlite/copied-files.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { idOfFile, putAside } from '../../../src/engines/sqlite/driver/put-aside.ts';
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

/** Returns the error of reading the whole file. */
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
  test.each(DAMAGES)('%s is named with its path, and what to do', (_, damage) => {
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

const asides = () => readdirSync(dirname(path)).filter((name) => /\.damaged-\w+-\d+$/.test(name));

/** Opens the file as one that may be recreated. */
function recreatable() {
  const reported: string[] = [];
  const db = new Database(path, {
    ...OPTIONS,
    cacheMiB: 0,
    onPutAside: (aside) => void reported.push(basename(aside)),
  });
  onTestFinished(() => db.close());
  const all = db.prepare('SELECT name FROM things');
  const add = db.prepare('INSERT INTO things VALUES (?, ?)');
  const write = (name: string) => db.write(() => add.run(name, 'x'));
  return { db, reported, write, names: () => all.all().map(({ name }) => name) };
}

describe('a file that may be recreated', () => {
  test.each(DAMAGES)('%s is put aside when it is opened, and reported once', async (_, damage) => {
    damage();
    const { names, reported, write } = recreatable();
    expect(names()).toEqual([]);
    await write('new');
    expect(reported).toEqual(asides());
    expect(reported).toHaveLength(1);
    const second = recreatable();
    expect([second.names(), second.reported]).toEqual([['new'], []]);
  });

  test('that is damaged while it is open is replaced, and what found it is to be retried', async () => {
    const one = recreatable();
    const other = recreatable();
    expect(other.names()).toHaveLength(1_000);
    overwrite(PAGE_BYTES);
    expect(() => one.names()).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE' }));
    expect(one.names()).toEqual([]);
    await one.write('new');
    // The user that had the old file open gets an error once, and then uses the new file.
    await expect(other.write('other')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await other.write('other');
    expect(one.names()).toEqual(['new', 'other']);
    expect([one.reported, other.reported, asides()]).toEqual([asides(), [], one.reported]);
    expect([one.db.replacements, other.db.replacements]).toEqual([1, 1]);
  });

  test('is put aside once, also where another process was first', () => {
    const id = idOfFile(path);
    overwrite(0);
    writeFileSync(`${path}-wal`, 'what the new file must not take for its own');
    const aside = putAside(path, id) ?? '';
    expect([existsSync(`${path}-wal`), existsSync(`${aside}-wal`)]).toEqual([false, true]);
    const { names } = recreatable();
    expect(putAside(path, id)).toBeUndefined();
    expect(names()).toEqual([]);
    expect([asides(), idOfFile(aside)]).toEqual([[basename(aside)], id]);
  });

  test('is usable when its replacement is reported, and of the old one nothing stays open', async () => {
    const isOfFile = (fd: string) => {
      const target = `/proc/self/fd/${fd}`;
      return existsSync(target) && readlinkSync(target).startsWith(path);
    };
    const openFiles = () => readdirSync('/proc/self/fd').filter(isOfFile).length;
    let names: unknown;
    const db: Database = new Database(path, {
      ...OPTIONS,
      cacheMiB: 0,
      onPutAside() {
        names = db.prepare('SELECT name FROM things').all();
      },
    });
    const [open, version] = [openFiles(), db.dataVersion()];
    expect([open > 0, version > 0]).toEqual([true, true]);
    overwrite(PAGE_BYTES);
    await expect(
      db.write(() => db.prepare("UPDATE things SET text = '' WHERE text > ''").run()),
    ).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect([names, db.dataVersion() > 0, openFiles()]).toEqual([[], true, open]);
    db.close();
    expect(openFiles()).toBe(0);
  });

  test('that another process has put aside gets no change any more: each kind of work begins anew', async () => {
    const { db } = recreatable();
    const add = db.prepare("INSERT INTO things VALUES ('new', 'x')");
    const counted = db.prepare('SELECT count(*) AS count FROM things');
    const works = [
      () => db.write(() => add.run()),
      async () => db.read(() => counted.get()),
      async () => counted.get(),
    ];
    for (const [replaced, work] of works.entries()) {
      putAside(path, idOfFile(path));
      await expect(work()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      expect([db.replacements, counted.get()?.count]).toEqual([replaced + 1, 0]);
    }
  });

  test('whose update meets damage is recreated too', () => {
    overwrite(PAGE_BYTES);
    const reported: string[] = [];
    const migrations = [...OPTIONS.migrations, "UPDATE things SET text = ''"];
    const db = new Database(path, { ...OPTIONS, migrations, onPutAside: (aside) => reported.push(aside) });
    onTestFinished(() => db.close());
    expect([db.prepare('SELECT name FROM things').all(), reported.length]).toEqual([[], 1]);
  });

  test('that is large is not looked through when it is opened', () => {
    overwrite(PAGE_BYTES);
    truncateSync(path, 16 * 1024 * 1024);
    const { reported, names } = recreatable();
    expect(reported).toEqual([]);
    expect(names).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE' }));
    expect(reported).toHaveLength(1);
  });

  test('that is whole is neither looked for faults in vain nor put aside', () => {
    const { names, reported } = recreatable();
    expect([names().length, reported]).toEqual([1_000, []]);
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
