import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../../src/engines/sqlite/driver/database.ts';
import { runQuery } from '../../../../src/engines/sqlite/view/page.ts';
import { MIGRATIONS } from '../../../../src/engines/sqlite/view/schema.ts';
import { openSqliteView, type SqliteTransactionsView } from '../../../../src/engines/sqlite/view/view.ts';
import { ROW_INDEXES, type RowIndexName } from '../../../../src/engines/stored/rows.ts';
import { transactionsViewContract } from '../../../contracts/transactions-view.contract.ts';
import { transactionsViewAtOnceContract } from '../../../contracts/transactions-view-at-once.contract.ts';
import { viewBuildContract } from '../../../contracts/view-build.contract.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { showing } from '../../../support/transactions/records.ts';
import { rowIn } from '../../../support/transactions/row-in.ts';

const clock = { now: () => 1_000_000 };

function openIn(folder: string): SqliteTransactionsView {
  return openSqliteView({ path: join(folder, 'transactions.db'), clock });
}

describe('the transactions view on SQLite', () => {
  transactionsViewContract(async () => openIn(temporaryFolder()));
  const openTwice = async () => {
    const folder = temporaryFolder();
    return [openIn(folder), openIn(folder)] as const;
  };
  transactionsViewAtOnceContract(openTwice);
  viewBuildContract(openTwice);

  test.each(Object.entries(ROW_INDEXES))(
    'a run of the index %s is one search of it alone, without a sort',
    async (index, equal) => {
      const folder = temporaryFolder();
      await openIn(folder).close();
      const db = new DatabaseSync(join(folder, 'transactions.db'));
      onTestFinished(() => db.close());
      const equals = [...equal, 'status'];
      const filters = Object.fromEntries(equals.map((column) => [column, 1]));
      const planOf = (part: 'ties' | 'range', bounds: Record<string, number>) =>
        db
          .prepare(`EXPLAIN QUERY PLAN ${runQuery(index as RowIndexName, part)}`)
          .all({ ...filters, ...bounds, limit: 1 })
          .map((row) => row.detail);
      const search = `SEARCH transactions USING COVERING INDEX ${index} (${equals.map((column) => `${column}=?`).join(' AND ')}`;
      expect(planOf('range', { from: 0, before: 1 })).toEqual([
        `${search} AND created_at>? AND created_at<?)`,
      ]);
      expect(planOf('ties', { at: 1, below: 1 })).toEqual([`${search} AND created_at=? AND id<?)`]);
    },
  );

  test('a page reads at most limit + 1 entries for each corporate and status, however many records there are', async () => {
    const view = openIn(temporaryFolder());
    const { generation } = await view.reset('store-1', 0);
    const rows = Array.from({ length: 3_000 }, (_, n) =>
      showing({
        id: n + 1,
        createdAtMs: n,
        corporateId: n % 30,
        status: n % 7 === 0 ? 'EXTERNAL' : 'CONFIRMED',
      }),
    );
    await view.apply(rows, { generation, position: 1 });
    const query = { accountId: 7, fromMs: 0, toMs: 5_000, statuses: ['CONFIRMED', 'EXTERNAL'] as const };
    for (const limit of [1, 10, 100]) {
      expect((await view.page({ ...query, limit })).entriesRead).toBeLessThanOrEqual(2 * (limit + 1));
      const references = { corporate_id: Array.from({ length: 30 }, (_, n) => n) };
      const { entriesRead } = await view.page({ ...query, limit, references });
      expect(entriesRead).toBeLessThanOrEqual(Math.min(60 * (limit + 1), 60 * 4 + 4 * (limit + 1)));
    }
    await view.close();
  });

  test('what is parked is counted, and found by its stream, by an index alone', async () => {
    const folder = temporaryFolder();
    await openIn(folder).close();
    const db = new DatabaseSync(join(folder, 'transactions.db'));
    onTestFinished(() => db.close());
    const planOf = (sql: string) =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map((row) => row.detail);
    expect(planOf('SELECT count(*) FROM parked')).toEqual([
      'SCAN parked USING COVERING INDEX parked_by_stream',
    ]);
    expect(planOf("DELETE FROM parked WHERE stream = 'x'")).toEqual([
      'SEARCH parked USING INDEX parked_by_stream (stream=?)',
    ]);
  });

  test('a file of the first version is upgraded with its content', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'transactions.db');
    const first = new Database(path, { migrations: MIGRATIONS.slice(0, 1), durability: 'normal' });
    first.exec("INSERT INTO parked VALUES (5, 'transaction-1', 0, 'Odd', 'odd', 0)");
    first.close();
    const view = openIn(folder);
    onTestFinished(() => view.close());
    expect(await view.parked()).toMatchObject([{ position: 5 }]);
    expect(await view.countParked()).toBe(1);
  });

  test('a batch that waits for the lock while the view is reset is refused as a whole', async () => {
    const folder = temporaryFolder();
    const view = openIn(folder);
    onTestFinished(() => view.close());
    const { generation } = await view.reset('store-1', 0);
    const db = new DatabaseSync(join(folder, 'transactions.db'));
    onTestFinished(() => db.close());
    db.exec('BEGIN IMMEDIATE; UPDATE checkpoint SET generation = generation + 1, position = 3');
    const applied = view.apply([showing({ id: 1 })], { generation, position: 9 });
    await nextTurn();
    db.exec('COMMIT');
    expect(await applied).toBe('reset');
    expect(await rowIn(view, 1)).toBeUndefined();
    expect(await view.checkpoint()).toMatchObject({ generation: generation + 1, position: 3 });
  });

  test('rows of an older rendering are served, and their checkpoint says so', async () => {
    const folder = temporaryFolder();
    const view = openIn(folder);
    onTestFinished(() => view.close());
    const { rendering } = await view.reset('store-1', 0);
    const db = new DatabaseSync(join(folder, 'transactions.db'));
    db.exec('UPDATE checkpoint SET rendering = rendering - 1');
    db.close();
    expect(await view.checkpoint()).toMatchObject({ rendering: rendering - 1 });
    const query = { accountId: 7, fromMs: 0, toMs: 5_000, statuses: ['CONFIRMED'] as const, limit: 1 };
    expect((await view.page(query)).rows).toEqual([]);
  });

  test('a file whose place another has taken is removed by the next process, where the switch was interrupted', async () => {
    const folder = temporaryFolder();
    const view = openIn(folder);
    await view.reset('store-1', 0);
    const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
    await view.close();
    const db = new DatabaseSync(join(folder, 'transactions.db'));
    db.exec('UPDATE checkpoint SET retired = 1'); // the commit of a switch
    db.close();
    const next = openIn(folder);
    onTestFinished(() => next.close());
    expect(await next.checkpoint()).toMatchObject({ generation });
    expect(readdirSync(folder).filter((name) => name.startsWith('transactions.db'))).toEqual([]);
  });

  test('a process that erases first after another has switched serves the other file from then on', async () => {
    const folder = temporaryFolder();
    const [view, other] = [openIn(folder), openIn(folder)];
    onTestFinished(async () => void (await Promise.all([view.close(), other.close()])));
    await view.reset('store-1', 0);
    const { generation } = await other.startBuild({ storeId: 'store-1', servesFrom: 0 });
    await other.apply([showing({ id: 1 })], { generation, position: 1 });
    expect(await other.serveBuild(generation)).toBe(true);
    expect(readdirSync(folder)).not.toContain('transactions.db');
    await view.erase(1);
    expect(await rowIn(view, 1)).toBe('hidden');
    expect(await rowIn(other, 1)).toBe('hidden');
  });

  test('a build of an older rendering is dropped, and another one begins', async () => {
    const folder = temporaryFolder();
    const view = openIn(folder);
    onTestFinished(() => view.close());
    await view.reset('store-1', 0);
    const older = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
    const db = new DatabaseSync(join(folder, `transactions-${older.generation}.db`));
    db.exec('UPDATE checkpoint SET rendering = rendering - 1');
    db.close();
    const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
    expect(generation).toBeGreaterThan(older.generation);
    expect((await view.building())?.generation).toBe(generation);
    expect(await view.apply([], { generation: older.generation, position: 1 })).toBe('reset');
  });

  test.each(['replace', 'retry'] as const)(
    'a %s that waits for the lock while another file is served is done in that one',
    async (name) => {
      const folder = temporaryFolder();
      const view = openIn(folder);
      onTestFinished(() => view.close());
      await view.reset('store-1', 0);
      const build = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
      const db = new DatabaseSync(join(folder, 'transactions.db'));
      onTestFinished(() => db.close());
      db.exec('BEGIN IMMEDIATE; UPDATE checkpoint SET retired = 1'); // the commit of a switch
      const changes = [showing({ id: 1 })];
      const written = name === 'retry' ? view.retry(changes) : view.replace(1, changes);
      await nextTurn();
      db.exec('COMMIT');
      await written;
      expect((await view.checkpoint())?.generation).toBe(build.generation);
      expect(await rowIn(view, 1)).toMatchObject({ id: 1 });
    },
  );

  test('an empty file under the first name does not take the place of the file that is served', async () => {
    const folder = temporaryFolder();
    const view = openIn(folder);
    await view.reset('store-1', 0);
    const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
    expect(await view.serveBuild(generation)).toBe(true);
    await view.close();
    new DatabaseSync(join(folder, 'transactions.db')).exec('CREATE TABLE mine (a)');
    const again = openIn(folder);
    onTestFinished(() => again.close());
    expect(await again.checkpoint()).toMatchObject({ generation });
  });

  test('a file of a newer version is refused with what to do', async () => {
    const folder = temporaryFolder();
    await openIn(folder).close();
    const db = new DatabaseSync(join(folder, 'transactions.db'));
    db.exec('PRAGMA user_version = 99');
    db.close();
    expect(() => openIn(folder)).toThrow(/newer program/);
  });
});
