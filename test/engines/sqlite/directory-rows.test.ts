import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteDirectoryRows } from '../../../src/engines/sqlite/directory-rows.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { directoryRowsContract } from '../../contracts/directory-rows.contract.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

directoryRowsContract(async () => {
  const path = join(temporaryFolder(), 'directory.db');
  return {
    rows: openSqliteDirectoryRows({ path }),
    second: () => openSqliteDirectoryRows({ path }),
    async lose(accountId) {
      const db = new Database(path, { migrations: ['', '', ''], durability: 'normal' });
      await db.write(() => db.prepare('DELETE FROM accounts WHERE account_id = ?').run(accountId));
      db.close();
    },
  };
});

test('a file of a former version loses the accounts as they were stored then', async () => {
  const path = join(temporaryFolder(), 'directory.db');
  const former = new Database(path, {
    migrations: ['CREATE TABLE snapshot (id INTEGER); CREATE TABLE chunks (bytes BLOB)', ''],
    durability: 'normal',
  });
  former.close();
  const rows = openSqliteDirectoryRows({ path });
  onTestFinished(() => rows.close());
  expect(await rows.checkpoint()).toBeUndefined();
  const db = new Database(path, { migrations: ['', '', ''], durability: 'normal' });
  onTestFinished(() => db.close());
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  expect(tables.map(({ name }) => name)).toEqual(['accounts', 'checkpoint', 'keys']);
});
