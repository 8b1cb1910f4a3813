import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { backupFile } from '../../../src/engines/sqlite/copied-files.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/engines/sqlite/event-store/event-store.ts';
import { backupDataDir } from '../../../src/operator/backup/backup.ts';
import { flipBytes } from '../../support/event-store/flip-bytes.ts';
import { nameOf, record } from '../../support/event-store/store-events.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { viewInFolder } from '../../support/transactions/open-view.ts';
import { within } from '../../support/waiting.ts';

const MADE_AT = '2026-09-03T08:00:00.000Z';

function eventsIn(folder: string): SqliteEventStore {
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock: systemClock });
  onTestFinished(() => store.close());
  return store;
}

function database(folder: string, name: string): DatabaseSync {
  const db = new DatabaseSync(join(folder, name));
  onTestFinished(() => db.close());
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE things (name TEXT)');
  return db;
}

/** A data directory with an event, every embedded file and the keys. */
async function dataDir() {
  const folder = temporaryFolder();
  const store = eventsIn(folder);
  await record(store, 'account-1', 'a');
  const view = viewInFolder(folder, systemClock);
  onTestFinished(() => view.close());
  const { generation } = await view.reset('store-1', 0);
  await view.apply([], { generation, position: 1 });
  for (const name of ['subscriptions.db', 'deliveries.db', 'accounts.db', 'control.db']) {
    database(folder, name);
  }
  for (const name of ['master.key', 'tls-cert.pem', 'tls-key.pem']) {
    writeFileSync(join(folder, name), name, { mode: 0o600 });
  }
  return { folder, store, view };
}

describe('a backup', () => {
  test('follows no link that somebody put in place of a key', async () => {
    const { folder } = await dataDir();
    rmSync(join(folder, 'master.key'));
    symlinkSync(join(folder, 'tls-key.pem'), join(folder, 'master.key'));
    const target = join(temporaryFolder(), 'backup');
    await expect(backupDataDir(folder, target, MADE_AT)).rejects.toThrow('is a symbolic link');
    expect(existsSync(join(target, 'SHA256SUMS'))).toBe(false);
  });

  test('copies what was made from the events before the events, then the keys, and no leases', async () => {
    const { folder } = await dataDir();
    const target = join(temporaryFolder(), 'new', 'backup');
    const files = [
      'transactions.db',
      'transactions-1.db',
      'subscriptions.db',
      'deliveries.db',
      'events.db',
      'master.key',
      'tls-cert.pem',
      'tls-key.pem',
    ];
    const manifest = {
      made_at: MADE_AT,
      files,
      program: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      events_up_to: 1,
    };
    expect(await backupDataDir(folder, target, MADE_AT)).toEqual(manifest);
    expect(readdirSync(target).sort()).toEqual([...files, 'SHA256SUMS', 'backup.json'].sort());
    expect(JSON.parse(readFileSync(join(target, 'backup.json'), 'utf8'))).toEqual(manifest);
    expect(readFileSync(join(target, 'master.key'), 'utf8')).toBe('master.key');
    expect(statSync(target).mode & 0o777).toBe(0o700);
    expect(statSync(join(target, 'master.key')).mode & 0o777).toBe(0o600);
    expect((await eventsIn(target).readStream('account-1')).map(nameOf)).toEqual(['a']);
  });

  test('has the files that exist', async () => {
    const folder = temporaryFolder();
    await record(eventsIn(folder), 'account-1', 'a');
    const { files } = await backupDataDir(folder, join(temporaryFolder(), 'backup'), MADE_AT);
    expect(files).toEqual(['events.db']);
  });

  test('has exactly what was committed, while others write', async () => {
    const { folder, store } = await dataDir();
    await record(store, 'account-1', 'b');
    const writer = new DatabaseSync(join(folder, 'events.db'));
    onTestFinished(() => writer.close());
    writer.exec(`BEGIN IMMEDIATE; INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata)
      VALUES ('account-1', 2, 'x', 'AccountOpened', 0, '{"name":"not committed"}', '{}')`);
    const target = temporaryFolder();
    await backupDataDir(folder, target, MADE_AT);
    writer.exec('COMMIT');
    expect((await eventsIn(target).readStream('account-1')).map(nameOf)).toEqual(['a', 'b']);
  });

  test.each(['deliveries.db', 'transactions.db'])(
    'that fails at %s has no checksums, and no incomplete file under its name',
    async (name) => {
      const folder = temporaryFolder();
      await record(eventsIn(folder), 'account-1', 'a');
      writeFileSync(join(folder, name), 'no database '.repeat(1_000));
      const target = temporaryFolder();
      await expect(backupDataDir(folder, target, MADE_AT)).rejects.toThrow();
      expect(existsSync(join(target, 'SHA256SUMS'))).toBe(false);
      expect(existsSync(join(target, name))).toBe(false);
    },
  );

  test('is refused where the target is not empty, which stays as it is', async () => {
    const { folder } = await dataDir();
    const target = temporaryFolder();
    mkdirSync(join(target, 'occupied'));
    await expect(backupDataDir(folder, target, MADE_AT)).rejects.toMatchObject({ code: 'REFUSED' });
    expect(readdirSync(target)).toEqual(['occupied']);
  });

  test('is refused where others may write to the target, and writes nothing there', async () => {
    const { folder } = await dataDir();
    const target = temporaryFolder();
    chmodSync(target, 0o777);
    await expect(backupDataDir(folder, target, MADE_AT)).rejects.toMatchObject({ code: 'REFUSED' });
    expect(readdirSync(target)).toEqual([]);
  });

  test('is refused where there is no event store, and creates no folder', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'master.key'), 'key');
    const target = join(temporaryFolder(), 'backup');
    await expect(backupDataDir(folder, target, MADE_AT)).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('FUEL_DATA_DIR'),
    });
    expect(existsSync(target)).toBe(false);
  });
});

/** Copies a view, and does this as soon as the copy of `transactions.db` has begun; says how often one began. */
async function backupDuring(change: (folder: string) => void) {
  const { folder } = await dataDir();
  const target = temporaryFolder();
  let copies = 0;
  let wasThere = false;
  let isDone = false;
  const look = (): void => {
    const isThere = existsSync(join(target, 'transactions.db.partial'));
    if (isThere && !wasThere) {
      copies += 1;
      if (copies === 1) change(folder);
    }
    wasThere = isThere;
    if (!isDone) setImmediate(look);
  };
  look();
  const { files } = await backupDataDir(folder, target, MADE_AT).finally(() => {
    isDone = true;
  });
  expect(readdirSync(target).sort()).toEqual([...files, 'SHA256SUMS', 'backup.json'].sort());
  return { views: files.filter((name) => name.startsWith('transactions')), copies };
}

test('a backup writes through no file and no link that somebody puts into the folder meanwhile', async () => {
  const victim = join(temporaryFolder(), 'victim');
  writeFileSync(victim, 'not ours');
  const { folder } = await dataDir();
  const target = temporaryFolder();
  let isDone = false;
  const look = (): void => {
    if (existsSync(join(target, 'transactions.db.partial')))
      symlinkSync(victim, join(target, 'deliveries.db.partial'));
    else if (!isDone) setImmediate(look);
  };
  look();
  const made = backupDataDir(folder, target, MADE_AT).finally(() => {
    isDone = true;
  });
  await expect(made).rejects.toMatchObject({ code: 'EEXIST' });
  expect(readFileSync(victim, 'utf8')).toBe('not ours');
});

describe('the view in a backup', () => {
  test('is copied once where nothing takes its place', async () => {
    expect(await backupDuring(() => undefined)).toEqual({
      views: ['transactions.db', 'transactions-1.db'],
      copies: 1,
    });
  });

  test('is copied again with the one that is begun beside it meanwhile', async () => {
    const begin = (folder: string) => void database(folder, 'transactions-2.db');
    expect(await backupDuring(begin)).toEqual({
      views: ['transactions.db', 'transactions-1.db', 'transactions-2.db'],
      copies: 2,
    });
  });

  test('is the one that took its place meanwhile, and nothing of the other is left', async () => {
    const replace = (folder: string) => {
      database(folder, 'transactions-2.db');
      for (const suffix of ['', '-wal', '-shm']) rmSync(join(folder, `transactions-1.db${suffix}`));
    };
    expect(await backupDuring(replace)).toEqual({
      views: ['transactions.db', 'transactions-2.db'],
      copies: 2,
    });
  });
});

describe('a copied file', () => {
  test('is complete, however often others write to its source meanwhile', async () => {
    const folder = temporaryFolder();
    const writer = database(folder, 'busy.db');
    const insert = writer.prepare('INSERT INTO things VALUES (?)');
    writer.exec('PRAGMA synchronous = OFF; BEGIN');
    for (let n = 0; n < 2_000; n++) insert.run('x'.repeat(1_000));
    writer.exec('COMMIT');
    const writing = setInterval(() => insert.run('more'), 1);
    onTestFinished(() => clearInterval(writing));
    const target = join(folder, 'copy.db');
    await within(backupFile(join(folder, 'busy.db'), target), 10_000, 'it starts over and over');
    clearInterval(writing);
    const copy = new DatabaseSync(target, { readOnly: true });
    onTestFinished(() => copy.close());
    expect(copy.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    expect(copy.prepare('SELECT count(*) AS n FROM things').get()?.n).toBeGreaterThanOrEqual(2_000);
  });

  test('is refused for a file that does not exist, which is not created', async () => {
    const folder = temporaryFolder();
    await expect(backupFile(join(folder, 'source.db'), join(folder, 'copy.db'))).rejects.toThrow();
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('the check of a backup', () => {
  test('leaves checksums of every file, which sha256sum finds right', async () => {
    const { folder } = await dataDir();
    const target = join(temporaryFolder(), 'backup');
    const { files } = await backupDataDir(folder, target, MADE_AT);
    const check = () => spawnSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: target, encoding: 'utf8' });
    expect(check()).toMatchObject({
      status: 0,
      stdout: [...files, 'backup.json'].map((name) => `${name}: OK\n`).join(''),
    });
    flipBytes(join(target, 'deliveries.db'), 100, 1);
    expect(check()).toMatchObject({ status: 1, stdout: expect.stringContaining('deliveries.db: FAILED') });
  });

  test('finds damage that was copied, names the file, and leaves no checksums', async () => {
    const { folder, store } = await dataDir();
    await store.close();
    flipBytes(join(folder, 'events.db'), 4_200, 3_000);
    const target = temporaryFolder();
    await expect(backupDataDir(folder, target, MADE_AT)).rejects.toMatchObject({
      code: 'STORE_DAMAGED',
      message: expect.stringContaining(`${join(folder, 'events.db')} is damaged`),
    });
    expect(existsSync(join(target, 'SHA256SUMS'))).toBe(false);
  });
});
