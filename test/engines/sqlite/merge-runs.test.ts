import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { world } from '../../../src/base/world.ts';
import { openSqliteTables } from '../../../src/engines/sqlite/tables/tables.ts';
import { drop, put } from '../../../src/tables/tables.ts';
import { ENTRIES, entry, STORE } from '../../support/engines/tables-under-test.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** The rows 0 to 599, two for each of 300 accounts. Each step of a merge takes longer than it may keep the loop. */
async function start() {
  const tables = openSqliteTables(STORE, { path: join(temporaryFolder(), 'tables.db') });
  onTestFinished(() => tables.close());
  const rows = Array.from({ length: 600 }, (_, n) => entry(n, { account: n % 300, made_at: n }));
  await tables.write(rows.map((row) => put(ENTRIES, row)));
  let nowMs = 0;
  const spy = vi.spyOn(world, 'steadyMs').mockImplementation(() => (nowMs += 5));
  onTestFinished(() => spy.mockRestore());
  const find = async (limit: number) => {
    const account = Array.from({ length: 300 }, (_, n) => n);
    const query = { index: 'by_account', equals: { account, status: [1, 2] }, columns: ['id'] } as const;
    return (await tables.find(ENTRIES, { ...query, limit })).map(({ id }) => id);
  };
  return { tables, find };
}

test('a merge of many runs gives the event loop a turn after each step that took long', async () => {
  const { find } = await start();
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    for (; !isOver; turns++) await turn();
  })();
  expect(await find(20)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  isOver = true;
  await others;
  expect(turns).toBeGreaterThan(20);
});

test('a merge of many runs misses no row that stays, whatever leaves and arrives between its steps', async () => {
  const { tables, find } = await start();
  const finding = find(250);
  const [gone, arrived]: number[][] = [[], []];
  for (let n = 0; n < 30; n++) {
    await turn();
    gone?.push(n * 10 + 3);
    arrived?.push(1_000 + n);
    await tables.write([
      drop(ENTRIES, n * 10 + 3),
      put(ENTRIES, entry(1_000 + n, { account: n * 9, made_at: n * 10 })),
    ]);
  }
  const found = await finding;
  expect(found).toHaveLength(250);
  const place = (id: number): number => (id < 1_000 ? id : (id - 1_000) * 10 + 0.5);
  expect(found).toEqual(found.toSorted((one, other) => place(one) - place(other)));
  const last = found.findLast((id) => id < 1_000) ?? 0;
  const staying = Array.from({ length: last + 1 }, (_, n) => n).filter((id) => gone?.includes(id) === false);
  expect(staying.filter((id) => !found.includes(id))).toEqual([]);
});

test('a merge whose tables are closed between two steps says so', async () => {
  const { tables, find } = await start();
  const finding = find(250);
  const ended = expect(finding).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  await turn();
  await tables.close();
  await ended;
});
