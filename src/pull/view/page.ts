import { REFERENCES, type Reference } from '../../../projections/transactions.ts';
import { recordIn } from '../record/record.ts';
import type { Generation } from './generations.ts';
import type { RowsTable } from './stores.ts';
import type { PageQuery, ViewPage } from './transactions-view.ts';

/** By the references that are asked for. */
const INDEXES = {
  '': 'by_account',
  corporate_group_id: 'by_group',
  corporate_id: 'by_corporate',
  'corporate_group_id,corporate_id': 'by_group_and_corporate',
} as const satisfies Record<string, keyof RowsTable['indexes']>;

/** Each corporate and status asked for is a run of the index, and the engine merges them: of none it reads more than the page. */
export async function findPage({ tables, rows }: Generation, query: PageQuery): Promise<ViewPage> {
  const { accountId: account_id, statuses: status, references = {}, fromMs, toMs, after, limit } = query;
  const asked = REFERENCES.filter((name) => references[name] !== undefined);
  const wanted: Partial<Record<Reference, number | readonly number[]>> = Object.fromEntries(
    asked.map((name) => [name, references[name]]),
  );
  const found = await tables.find(rows, {
    index: INDEXES[asked.join() as keyof typeof INDEXES],
    equals: { account_id, ...wanted, status },
    range: { from: fromMs, to: toMs },
    descending: true,
    after: after && { created_at: after.createdAtMs, id: after.id },
    columns: ['id', 'created_at', 'record'],
    limit: limit + 1,
  });
  const shown = found.slice(0, limit).map(({ id, created_at, record }) => ({
    ...{ id, createdAtMs: created_at ?? 0 },
    ...recordIn(record ?? ''),
  }));
  return { rows: shown, hasMore: found.length > limit };
}
