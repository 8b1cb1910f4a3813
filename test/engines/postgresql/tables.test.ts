import { expect, test, vi } from 'vitest';
import { PostgresConnection } from '../../../src/engines/postgresql/driver/connection.ts';
import type { Sql } from '../../../src/engines/postgresql/driver/session.ts';
import { Reading } from '../../../src/engines/postgresql/tables/sql.ts';
import { openPostgresTables } from '../../../src/engines/postgresql/tables/tables.ts';
import { selected } from '../../../src/tables/selected.ts';
import { put } from '../../../src/tables/tables.ts';
import { tablesContract } from '../../contracts/tables.contract.ts';
import {
  describeWithPostgres,
  freshSchema,
  postgresql,
} from '../../support/engines/postgresql/postgresql.ts';
import { ENTRIES, entry, type ReadPlan, STORE } from '../../support/engines/tables-under-test.ts';

interface Node {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Node[];
}

/** Returns the server's plan of each statement that the work runs. */
async function plansOf(work: () => Promise<unknown>): Promise<ReadPlan[]> {
  const all = vi.spyOn(PostgresConnection.prototype, 'use');
  const statements: [PostgresConnection, Sql][] = [];
  all.mockImplementation(function use(this: PostgresConnection, withinMs, asked) {
    return original.call(this, withinMs, (run) =>
      asked((sql) => {
        statements.push([this, sql]);
        return run(sql);
      }),
    );
  });
  try {
    await work();
  } finally {
    all.mockRestore();
  }
  const plans: ReadPlan[] = [];
  for (const [connection, { sql, values = [] }] of statements) {
    const explain = { sql: `EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, values };
    const [row] = await connection.use(10_000, (run) => run(explain));
    const { Plan } = ((row?.['QUERY PLAN'] ?? []) as unknown as { Plan: Node }[])[0] as { Plan: Node };
    plans.push(...readsIn(Plan).map((read) => ({ ...read, sql, Plan: JSON.stringify(Plan) })));
  }
  return plans;
}
const original = PostgresConnection.prototype.use;

/** Returns the reads in a plan. A scan or a sort of a table counts as one that reads more. */
function readsIn(node: Node): ReadPlan[] {
  const { 'Node Type': type, 'Index Name': name = 'none', Plans = [] } = node;
  const below = Plans.flatMap(readsIn);
  if (/Sort/.test(type) && Plans.some((each) => !isLimited(each)))
    return [{ index: type, isMore: true }, ...below];
  if (!/Scan/.test(type) || /Function|CTE|WorkTable|Subquery/.test(type)) return below;
  const index = name.split(' ').slice(1).join(' ') || type;
  const { 'Actual Rows': rows, 'Actual Loops': loops } = node;
  const beside = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  return [{ index, isMore: !/^Index/.test(type), read: (rows + beside) * loops }, ...below];
}

/** True if the rows are limited: when several runs are merged, a limited number of rows of each is sorted. */
function isLimited({ 'Node Type': type, Plans = [] }: Node): boolean {
  return type === 'Limit' || Plans.some(isLimited);
}

describeWithPostgres('tables on PostgreSQL', () => {
  tablesContract(async () => {
    const schema = freshSchema();
    const connection = postgresql(schema);
    const second = () => openPostgresTables(STORE, { connection, pollMs: 50 });
    return { tables: second(), second, plansOf };
  });
  test('of many runs only the rows that are asked for are read, and of the others keys', async () => {
    const schema = freshSchema();
    const connection = postgresql(schema);
    const tables = openPostgresTables(STORE, { connection });
    const rows = Array.from({ length: 1_200 }, (_, n) =>
      entry(n, { account: n % 300, made_at: (n * 7) % 1_200 }),
    );
    await tables.write(rows.map((row) => put(ENTRIES, row)));
    await connection.use(10_000, (run) => run({ sql: `VACUUM ANALYZE "${schema}"."${ENTRIES.name}"` }));
    const equals = { account: Array.from({ length: 300 }, (_, n) => n), status: [1, 2] };
    const plans = await plansOf(async () => {
      const found = await tables.find(ENTRIES, { index: 'by_account', equals, descending: true, limit: 5 });
      expect(found.map((row) => row.made_at)).toEqual([1_199, 1_198, 1_197, 1_196, 1_195]);
    });
    expect(plans).toHaveLength(3);
    expect(plans.filter(({ index }) => index === 'key')).toMatchObject([{ read: 5 }]);
    expect(JSON.stringify(plans).match(/Index Only Scan/g)?.length).toBeGreaterThanOrEqual(2);
    await tables.close();
  });

  test.each([false, true])(
    'a run that ends is not followed by the rest of its account (descending: %s)',
    async (descending) => {
      const schema = freshSchema();
      const connection = postgresql(schema);
      const tables = openPostgresTables(STORE, { connection });
      const others = Array.from({ length: 3_000 }, (_, n) =>
        entry(n, { status: n % 2 === 0 ? 1 : 3, made_at: n }),
      );
      await tables.write(
        [...others, entry(9_000, { status: 2, made_at: 5 })].map((row) => put(ENTRIES, row)),
      );
      const one = { index: 'by_account', equals: { account: 7, status: 2 }, descending } as const;
      const { sql, values = [] } = new Reading(schema, ENTRIES).run(selected(ENTRIES, one), {
        columns: ['id'],
        limit: 5,
      });
      const [row] = await connection.use(10_000, (run) =>
        run({ sql: `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`, values }),
      );
      const [{ Plan } = { Plan: {} }] = (row?.['QUERY PLAN'] ?? []) as unknown as {
        Plan: Record<string, number>;
      }[];
      expect((Plan['Shared Hit Blocks'] ?? 0) + (Plan['Shared Read Blocks'] ?? 0)).toBeLessThan(12);
      expect(await tables.find(ENTRIES, { ...one, limit: 5 })).toMatchObject([{ id: 9_000 }]);
      await tables.close();
    },
  );
});
