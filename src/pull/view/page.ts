import { REFERENCES, type Reference } from '../../../projections/transactions.ts';
import { FuelError } from '../../base/errors.ts';
import { recordIn } from '../record/record.ts';
import type { Generation } from './generations.ts';
import { indexOf } from './stores.ts';
import type { PageQuery, ViewPage } from './transactions-view.ts';

/** The reference that the page is asked for by and this view lacks, being of an older rendering; `undefined` if it has all. */
export function lackedBy(
  { references: known }: Generation,
  { references = {} }: PageQuery,
): Reference | undefined {
  return REFERENCES.find((name) => references[name] !== undefined && !known.includes(name));
}

/**
 * Each corporate and status asked for is a run of the index, and the engine merges them: of none it reads more than the
 * page. Rejects with `STORE_UNAVAILABLE` for a reference that the view lacks.
 */
export async function findPage(generation: Generation, query: PageQuery): Promise<ViewPage> {
  const { accountId: account_id, statuses: status, references = {}, fromMs, toMs, after, limit } = query;
  const asked = REFERENCES.filter((name) => references[name] !== undefined);
  const lacked = lackedBy(generation, query);
  if (lacked !== undefined)
    throw new FuelError(
      'STORE_UNAVAILABLE',
      `the transactions view has no ${lacked} yet: start fuel serve, which builds one that has it`,
    );
  const wanted: Partial<Record<Reference, number | readonly number[]>> = Object.fromEntries(
    asked.map((name) => [name, references[name]]),
  );
  const found = await generation.tables.find(generation.rows, {
    index: indexOf(asked),
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
