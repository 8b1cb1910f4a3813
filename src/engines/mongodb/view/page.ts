import type { Db, Filter } from 'mongodb';
import { REFERENCES } from '../../../../projections/transactions.ts';
import { inListOrder, type PageQuery, type PageRow } from '../../../pull/view/transactions-view.ts';
import { indexFor, type RowIndexName, statusCode } from '../../stored/rows.ts';
import type { TransactionDocument } from './documents.ts';
import { generationOf } from './generations.ts';
import { readPageRow } from './page-row.ts';

/**
 * MongoDB merges the runs of several equal values in order, as long as a query has at most this many
 * (`internalQueryMaxScansToExplode`); beyond, it would sort everything that matches.
 */
const MAX_RUNS = 200;

export interface PageRead {
  /** The newest `limit` + 1 of the query, or fewer. */
  readonly rows: readonly PageRow[];
  /**
   * Whether every search found something. An empty result may come from a dropped collection: then the checkpoint must
   * be read to see which generation is in use.
   */
  readonly isProven: boolean;
}

export interface PageSearch {
  readonly index: RowIndexName;
  readonly filter: Filter<TransactionDocument>;
}

/**
 * Reads a page from a generation: one query for up to 100 corporates and both statuses, and a query for each further 200
 * runs, all at once. It costs one index entry for each run, that is one corporate and status, and one for each row of
 * each query, up to `limit` + 1.
 */
export async function readPage(
  db: Db,
  generation: number,
  { query, maxTimeMS }: { readonly query: PageQuery; readonly maxTimeMS: number },
): Promise<PageRead> {
  const { rows } = generationOf(db, generation);
  const limit = query.limit + 1;
  const found = await Promise.all(
    pageSearches(query).map(async ({ index, filter }) => {
      // One batch: the collection could be dropped before a second one.
      const options = { hint: index, limit, batchSize: limit + 1, maxTimeMS, raw: true };
      const documents = await rows.find(filter, options).sort({ place: -1 }).toArray();
      return documents as unknown as Uint8Array[]; // because of `raw`
    }),
  );
  const read = found.flat().map((document) => readPageRow(document));
  return {
    rows: found.length === 1 ? read : newest(read, limit),
    isProven: found.every((documents) => documents.length > 0),
  };
}

export function pageSearches(query: PageQuery): PageSearch[] {
  const { statuses, after, references = {} } = query;
  const before =
    after === undefined
      ? { created_at: new Date(query.toMs + 1) }
      : { created_at: new Date(after.createdAtMs), id: after.id };
  const equal = {
    account_id: query.accountId,
    status: { $in: statuses.map(statusCode) },
    place: { $gte: { created_at: new Date(query.fromMs) }, $lt: before },
  };
  const index = indexFor(query);
  let searches: PageSearch[] = [{ index, filter: equal }];
  let runs = statuses.length;
  for (const name of REFERENCES) {
    if (references[name] === undefined) continue;
    const values = [references[name]].flat();
    const parts = chunks(values, Math.max(1, Math.floor(MAX_RUNS / runs)));
    runs *= parts[0]?.length ?? 1;
    searches = parts.flatMap(($in) =>
      searches.map(({ filter }) => ({ index, filter: { ...filter, [name]: { $in } } })),
    );
  }
  return searches;
}

function newest(rows: PageRow[], count: number): PageRow[] {
  return rows.sort(inListOrder).slice(0, count);
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, n) => items.slice(n * size, (n + 1) * size));
}
