import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ACCOUNTS_STORE } from '../../../src/accounts/rows/tables.ts';
import { systemClock as clock } from '../../../src/base/clock.ts';
import { backupFile } from '../../../src/engines/sqlite/copied-files.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { inspectFile } from '../../../src/engines/sqlite/driver/inspect-file.ts';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { SqliteSubscriptions } from '../../../src/engines/sqlite/event-store/subscriptions.ts';
import { openSqliteTables } from '../../../src/engines/sqlite/tables/tables.ts';
import { openRequestJournal, REQUESTS_STORE } from '../../../src/pull/stored-requests.ts';
import { queueInFile } from '../../support/deliveries/open-queue.ts';
import { fileCoordination } from '../../support/engines/coordination.ts';
import { openFiles } from '../../support/interposed.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { viewInFolder } from '../../support/transactions/open-view.ts';

const FAST = { durability: 'normal' } as const;

test('a store that is closed has none of its files open', async () => {
  const folder = temporaryFolder();
  const path = (name: string): string => join(folder, name);
  const store = openSqliteEventStore({ path: path('events.db'), clock });
  const view = viewInFolder(folder, clock);
  await view.reset('store-1', 0);
  await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
  const opened = [
    view,
    new SqliteSubscriptions({ path: path('subscriptions.db'), store, clock }),
    queueInFile({ path: path('deliveries.db'), clock }),
    fileCoordination(path('control.db'), clock),
    openSqliteTables(ACCOUNTS_STORE, { path: path('accounts.db') }),
    openRequestJournal(openSqliteTables(REQUESTS_STORE, { path: path('requests.db') })),
    store,
  ];
  expect(openFiles(folder)).toBeGreaterThan(opened.length);
  for (const one of opened) await one.close();
  expect(openFiles(folder)).toBe(0);
});

test('a file that is refused, looked at or copied is not left open, also where that fails', async () => {
  const folder = temporaryFolder();
  const [path, damaged] = [join(folder, 'some.db'), join(folder, 'damaged.db')];
  const two = ['CREATE TABLE a (x)', 'CREATE TABLE b (x)'];
  new Database(path, { ...FAST, migrations: two }).close();
  expect(() => new Database(path, { ...FAST, migrations: two.slice(1) })).toThrow(/newer/);
  writeFileSync(damaged, 'no database'.repeat(1_000));
  expect(() => new Database(damaged, { ...FAST, migrations: two })).toThrow(/damaged/);
  inspectFile(path, { maxCheckedBytes: 1e6 });
  expect(() => inspectFile(damaged, { maxCheckedBytes: 1e6 })).toThrow(/damaged/);
  await backupFile(path, join(folder, 'copy.db'));
  mkdirSync(join(folder, 'taken.db'));
  await expect(backupFile(path, join(folder, 'taken.db'))).rejects.toThrow();
  expect(openFiles(folder)).toBe(0);
});
