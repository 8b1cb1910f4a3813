import { REFERENCES, type Reference } from '../../../projections/transactions.ts';
import { FuelError } from '../../base/errors.ts';
import type { Generation } from './generations.ts';
import { indexOf, type Row } from './stores.ts';
import type { PageQuery, ViewPage } from './transactions-view.ts';

/** The limit for a call. A page takes two, so it is refused within 2 s if a server does not answer. */
export const PAGE_CALL_MS = 900;
/** Up to this many ids the runs of a reference's index are merged. With more, records with any id are looked at first. */
const MAX_MERGED = 100;
/** Records with any id are looked at page by page while at least one of so many fits. Otherwise the runs are merged. */
const ONE_FITS_OF = 4;

type Refers = Readonly<Partial<Record<Reference, number | readonly number[]>>>;

/**
 * Each corporate and status asked for is a run of the index, and the engine merges them: of none it reads more than the
 * page. The runs of many corporates are merged only if few of the account's newest records are of these. Rejects with
 * `STORE_UNAVAILABLE` for a reference that the view lacks.
 */
export async function findPage(generation: Generation, query: PageQuery): Promise<ViewPage> {
  const { references = {}, limit } = query;
  const lacked = REFERENCES.find(
    (name) => references[name] !== undefined && !generation.references.includes(name),
  );
  if (lacked !== undefined)
    throw new FuelError(
      'STORE_UNAVAILABLE',
      `the transactions view has no ${lacked} yet. Start \`fuel serve\`, which builds one that has it`,
    );
  const refers: Refers = Object.fromEntries(
    REFERENCES.flatMap((name) => (references[name] === undefined ? [] : [[name, references[name]]])),
  );
  const found = await findRows(generation, query, refers);
  const shown = found
    .slice(0, limit)
    .map(({ id, created_at, record }) => ({ id, createdAtMs: created_at ?? 0, record: record ?? '' }));
  return { rows: shown, hasMore: found.length > limit };
}

type FoundRow = Pick<Row, 'id' | 'created_at' | 'record'>;

/** Returns the rows of the page, and one more if there is one. */
async function findRows(generation: Generation, query: PageQuery, refers: Refers): Promise<FoundRow[]> {
  const many = REFERENCES.find((name) => [refers[name] ?? []].flat().length > MAX_MERGED);
  const wanted = query.limit + 1;
  if (many === undefined) return readRows(generation, query, { refers, limit: wanted });
  const { [many]: ids, ...others } = refers;
  const asked = new Set([ids ?? []].flat());
  const found: FoundRow[] = [];
  let { after } = query;
  for (let looked = 0; found.length * ONE_FITS_OF >= looked; ) {
    const some = await readRows(
      generation,
      { ...query, after },
      { refers: others, limit: wanted, also: many },
    );
    for (const row of some) if (asked.has(row[many] ?? Number.NaN)) found.push(row);
    const last = some.at(-1);
    if (found.length >= wanted || some.length < wanted || last === undefined) return found.slice(0, wanted);
    after = { createdAtMs: last.created_at ?? 0, id: last.id };
    looked += some.length;
  }
  const rest = await readRows(generation, { ...query, after }, { refers, limit: wanted - found.length });
  return [...found, ...rest];
}

/** Reads rows by the index of these references. */
function readRows(
  { tables, rows }: Generation,
  { accountId: account_id, statuses: status, fromMs, toMs, after }: PageQuery,
  { refers, limit, also }: { readonly refers: Refers; readonly limit: number; readonly also?: Reference },
): Promise<(FoundRow & Partial<Row>)[]> {
  return tables.find(rows, {
    index: indexOf(REFERENCES.filter((name) => refers[name] !== undefined)),
    equals: { account_id, ...refers, status },
    range: { from: fromMs, to: toMs },
    descending: true,
    after: after && { created_at: after.createdAtMs, id: after.id },
    columns: ['id', 'created_at', 'record', ...(also === undefined ? [] : [also])],
    limit,
    withinMs: PAGE_CALL_MS,
  });
}
