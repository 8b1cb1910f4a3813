import type { Document } from 'mongodb';
import { expect, test } from 'vitest';
import { openMongoTables } from '../../../src/engines/mongodb/tables/tables.ts';
import { removeRows } from '../../../src/tables/remove-rows.ts';
import { change, drop, put, type Tables } from '../../../src/tables/tables.ts';
import { tablesContract } from '../../contracts/tables.contract.ts';
import { describeWithMongodb, freshDatabase, mongodb } from '../../support/engines/mongodb.ts';
import { ENTRIES, PARCELS, type ReadPlan, STORE } from '../../support/engines/tables-under-test.ts';
import { replacing } from '../../support/interposed.ts';

describeWithMongodb('tables on MongoDB', () => {
  tablesContract(async () => {
    const database = freshDatabase();
    const connection = mongodb(database);
    const second = () => openMongoTables(STORE, { connection, pollMs: 50 });
    /** Returns the profiler's record of each read. */
    const plansOf = (work: () => Promise<unknown>): Promise<ReadPlan[]> =>
      connection.use(async (db) => {
        await db.command({ profile: 2 });
        await work();
        await db.command({ profile: 0 });
        const ns = { $in: [PARCELS, ENTRIES].map(({ name }) => `${database}.${name}`) };
        const profiled = await db.collection('system.profile').find({ ns }).toArray();
        await db.collection('system.profile').drop();
        return profiled.map((each) => planOf(each));
      });
    return { tables: second(), second, plansOf };
  });

  async function profiled(work: (tables: Tables) => Promise<unknown>, which: Document): Promise<Document[]> {
    const connection = mongodb();
    const tables = openMongoTables(STORE, { connection });
    await tables.count(ENTRIES, { index: 'key' }, 1);
    return connection.use(async (db) => {
      await db.command({ profile: 2 });
      await work(tables);
      await db.command({ profile: 0 });
      return db.collection('system.profile').find(which).toArray();
    });
  }
  const entry = (id: number) => ({ id, account: id, revision: 1, status: 1, made_at: id });

  test('more than a hundred rows come in one round trip', async () => {
    const ids = Array.from({ length: 150 }, (_, id) => id);
    const work = async (tables: Tables) => {
      await tables.write(ids.map((id) => put(ENTRIES, entry(id))));
      expect(await tables.get(ENTRIES, ids)).toHaveLength(150);
      expect(await tables.find(ENTRIES, { index: 'by_account', limit: 150 })).toHaveLength(150);
      const groups = { index: 'by_account', of: 'account' } as const;
      expect(await tables.firsts(ENTRIES, groups)).toHaveLength(150);
      const guarded = ids.map((id) => put(ENTRIES, entry(id), { as: { revision: id % 2 } }));
      expect((await tables.write(guarded)).filter(Boolean)).toHaveLength(75);
      expect(await removeRows(tables, ENTRIES, { index: 'key' }, 150)).toBe(150);
    };
    expect(await profiled(work, { op: 'getmore' })).toEqual([]);
  });

  /** Two rows in each of 600 runs. The rows of high accounts are the newest. */
  const manyRuns = Array.from({ length: 1_200 }, (_, id) => ({
    ...entry(id),
    ...{
      account: id % 300,
      status: 1 + (id % 4 < 2 ? 0 : 1),
      made_at: (id % 300) * 10 + Math.floor(id / 300),
    },
  }));
  const newest = {
    index: 'by_account',
    equals: { account: Array.from({ length: 300 }, (_, n) => n), status: [1, 2] },
    descending: true,
    limit: 5,
  } as const;

  test('of many runs only the rows that are asked for are read, and of the others where they begin', async () => {
    const work = async (tables: Tables) => {
      await tables.write(manyRuns.map((row) => put(ENTRIES, row)));
      const found = await tables.find(ENTRIES, newest);
      expect(found.map((row) => row.made_at)).toEqual([2_993, 2_992, 2_991, 2_990, 2_983]);
    };
    const reads = await profiled(work, { docsExamined: { $gt: 0 }, op: { $in: ['query', 'command'] } });
    expect(reads.reduce((sum, { docsExamined }) => sum + docsExamined, 0)).toBeLessThanOrEqual(10);
  });

  test('a row of many runs that is removed while they are read does not hide the rows after it', async () => {
    const connection = mongodb();
    const tables = openMongoTables(STORE, { connection });
    await tables.write(manyRuns.map((row) => put(ENTRIES, row)));
    const gone = manyRuns.filter((row) => row.account === 298).map(({ id }) => id);
    const beginnings = newest.equals.status.length;
    let reads = 0;
    const removing = replacing(connection, {
      async use(work) {
        if (++reads === beginnings + 1) await tables.write(gone.map((id) => drop(ENTRIES, id)));
        return connection.use(work);
      },
    });
    const reader = openMongoTables(STORE, { connection: removing });
    await reader.get(ENTRIES, [1]);
    reads = 0;
    const found = await reader.find(ENTRIES, newest);
    expect(found.map((row) => row.made_at)).toEqual([2_993, 2_992, 2_991, 2_990, 2_973]);
  });

  test('a write is done once a majority has it, so that a failover does not undo it', async () => {
    const work = (tables: Tables) =>
      tables.write([put(ENTRIES, entry(1), 'missing'), change(ENTRIES, 2, { account: 1 })]);
    const written = await profiled(work, {
      op: { $in: ['insert', 'command'] },
      'command.insert': ENTRIES.name,
    });
    expect(written).toMatchObject([{ command: { writeConcern: { w: 'majority' } } }]);
  });
});

function planOf({ command, planSummary, keysExamined, docsExamined, hasSortStage }: Document): ReadPlan {
  const hint = String(command.hint);
  const index = hint === '_id_' ? 'key' : hint;
  const isGrouped = JSON.stringify(command.pipeline ?? []).includes('$first'); // the groups are sorted, not the rows
  const isMore =
    (hasSortStage === true && !isGrouped) || !/^(?:IXSCAN|COUNT_SCAN|DISTINCT_SCAN|IDHACK)/.test(planSummary);
  return { index, isMore, read: keysExamined + docsExamined };
}
