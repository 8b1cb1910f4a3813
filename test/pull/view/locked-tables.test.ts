import { expect, onTestFinished, test } from 'vitest';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { erasureOf } from '../../../src/records/project-event.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
} from '../../support/engines/postgresql/postgresql.ts';
import { viewOnPostgres } from '../../support/transactions/open-view.ts';
import { WHOLE } from '../../support/transactions/opened-view.ts';
import { showing } from '../../support/transactions/records.ts';

const clock = { now: () => 1_000_000 };
const ids = async (view: TransactionsView) => (await view.page(WHOLE)).rows.map(({ id }) => id);

/** Serves 1 and 2 while the tables of that view are read as by `pg_dump`, which locks them until it ends. */
async function dumped() {
  const schema = freshSchema();
  const [connection, dump] = [postgresql(schema), postgresql(schema)];
  const open = (): TransactionsView => {
    const view = viewOnPostgres(connection, clock);
    onTestFinished(() => view.close());
    return view;
  };
  const [view, other] = [open(), open()];
  const { generation: former } = await view.reset('store-1', 0);
  await view.apply([showing({ id: 1 }), showing({ id: 2 })], { generation: former, position: 4 });
  expect(await ids(other)).toEqual([2, 1]);
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const { promise: locked, resolve: onLocked } = Promise.withResolvers<void>();
  const dumping = dump.transaction({ withinMs: 60_000 }, async (run) => {
    await run({ sql: `LOCK TABLE "${schema}".transactions_${former} IN ACCESS SHARE MODE` });
    onLocked();
    await ended;
  });
  await locked;
  const isThere = async (): Promise<boolean> => {
    const sql = `SELECT to_regclass('"${schema}".transactions_${former}') IS NOT NULL AS is`;
    const [row] = await connection.use(5_000, (run) => run({ sql }));
    return Boolean(row?.is);
  };
  const built = async (): Promise<number> => {
    const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 4 });
    await view.apply([showing({ id: 2 }), showing({ id: 3 })], { generation, position: 4 });
    return generation;
  };
  const ends = async (): Promise<void> => {
    end();
    await dumping;
  };
  return { view, other, open, former, built, isThere, ends };
}

describeWithPostgres('a view whose former tables are read by pg_dump', () => {
  test('is served by every process at once, and the former one is removed later', async () => {
    const { view, other, open, former, built, isThere, ends } = await dumped();
    const generation = await built();
    const switching = view.serveBuild(generation);
    const startedAtMs = performance.now();
    for (let shown: number[] = []; shown[0] !== 3; ) shown = await ids(other); // no page is ever refused
    expect(await switching).toBe(true);
    expect(performance.now() - startedAtMs).toBeLessThan(10_000);
    expect([await view.leaving(), await isThere()]).toEqual([[former], true]);
    expect(await other.apply([], { generation: former, position: 9 })).toBe('reset');
    expect(await other.apply([showing({ id: 5 })], { generation, position: 5 })).toEqual([]);
    await ends();
    expect(await open().apply([], { generation, position: 5 })).toEqual([]);
    expect([await view.leaving(), await isThere()]).toEqual([[], false]);
    expect(await ids(other)).toEqual([5, 3, 2]);
  });

  test('keeps no former row of an erased transaction', async () => {
    const { view, built, isThere, ends, former } = await dumped();
    await view.serveBuild(await built());
    await view.replace(2, [erasureOf(2)]);
    expect(await ids(view)).toEqual([3]);
    expect([await view.leaving(), await isThere()]).toEqual([[former], true]);
    await ends();
  });
});
