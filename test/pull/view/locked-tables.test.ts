import { expect, onTestFinished, test } from 'vitest';
import { REMOVED_AFTER_MS } from '../../../src/pull/view/generations.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { erasureOf } from '../../../src/records/project-event.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
} from '../../support/engines/postgresql/postgresql.ts';
import { stoppedTime } from '../../support/steady-time.ts';
import { viewOnPostgres } from '../../support/transactions/open-view.ts';
import { WHOLE } from '../../support/transactions/opened-view.ts';
import { showing } from '../../support/transactions/records.ts';

const clock = { now: () => 1_000_000 };
const ids = async (view: TransactionsView) => (await view.page(WHOLE)).rows.map(({ id }) => id);

/** Serves 1 and 2 while the tables of that view are locked, by default as by `pg_dump` until it ends. */
async function dumped(mode: 'ACCESS SHARE' | 'ACCESS EXCLUSIVE' = 'ACCESS SHARE') {
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
    await run({ sql: `LOCK TABLE "${schema}".transactions_${former} IN ${mode} MODE` });
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
  test('is served by every process, and the former one is removed later', async () => {
    const advance = stoppedTime();
    const { view, other, open, former, built, isThere, ends } = await dumped();
    const generation = await built();
    expect(await view.serveBuild(generation)).toBe(true);
    expect(await other.apply([], { generation: former, position: 9 })).toBe('reset');
    expect(await ids(other)).toEqual([3, 2]);
    advance(REMOVED_AFTER_MS);
    const removing = other.apply([showing({ id: 5 })], { generation, position: 5 });
    expect(await ids(open())).toContain(3); // no page waits for the removal
    expect(await removing).toEqual([]);
    expect([await view.leaving(), await isThere()]).toEqual([[former], true]);
    await ends();
    advance(REMOVED_AFTER_MS);
    expect(await other.apply([], { generation, position: 5 })).toEqual([]);
    expect([await view.leaving(), await isThere()]).toEqual([[], false]);
    expect(await ids(other)).toEqual([5, 3, 2]);
  });

  test('answers no page while they are locked for every reader, and says so in time for an answer within 2 s', async () => {
    const { view, ends } = await dumped('ACCESS EXCLUSIVE');
    const startedAtMs = performance.now();
    await expect(view.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(performance.now() - startedAtMs).toBeLessThan(1_900);
    await ends();
    expect(await ids(view)).toEqual([2, 1]);
  });

  test('keeps no former row of an erased transaction', async () => {
    stoppedTime();
    const { view, other, built, isThere, ends, former } = await dumped();
    await view.serveBuild(await built());
    await view.replace(2, [erasureOf(2)]);
    expect([await ids(view), await ids(other)]).toEqual([[3], [1]]);
    expect([await view.leaving(), await isThere()]).toEqual([[former], true]);
    await ends();
  });
});
