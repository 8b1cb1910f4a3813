import { world } from '../../base/world.ts';
import type { TablePlan } from '../../tables/plan.ts';
import { change, type Selection, type Tables } from '../../tables/tables.ts';
import { DELIVERIES, type DeliveryRow, type StoredRow } from './tables.ts';

/** Tries of a change: each time another process has changed the row in between. */
const MAX_TRIES = 50;
/** Rows of one write: some milliseconds of the event loop. */
const BULK = 250;

/** By the keys of rows, the columns that are set. */
export type Changes<Columns> = ReadonlyMap<string, Partial<Columns>>;

/**
 * Reads rows, decides, and writes what was decided as far as they are as they were read; reads the others and decides
 * again. Returns the changed ones as they are now. Repeated after an interruption it does the rest.
 */
export async function changeRows<Row extends { readonly version: number }, Columns = Row>(
  tables: Tables,
  table: TablePlan,
  keys: readonly string[],
  decide: (rows: readonly Row[]) => Promise<Changes<Columns>>,
): Promise<Row[]> {
  const changed: Row[] = [];
  const keyOf = (row: Row) => row[table.key as keyof Row] as string;
  let left = keys;
  for (let tries = 0; tries < MAX_TRIES && left.length > 0; tries++) {
    const rows = (await tables.get(table, left)) as unknown as readonly Row[];
    const decided = await decide(rows);
    const next = rows.flatMap((row) => {
      const columns = decided.get(keyOf(row));
      return columns === undefined ? [] : [{ row, columns: { ...columns, version: row.version + 1 } }];
    });
    if (next.length === 0) return changed;
    const done = await tables.write(
      next.map(({ row, columns }) => change(table, keyOf(row), columns, { as: { version: row.version } })),
    );
    for (const [n, { row, columns }] of next.entries()) if (done[n]) changed.push({ ...row, ...columns });
    left = next.flatMap(({ row }, n) => (done[n] ? [] : [keyOf(row)]));
  }
  if (left.length > 0)
    throw new Error(`${left.length} rows of ${table.name} changed faster than they could be changed here`);
  return changed;
}

export function changeDeliveries(
  tables: Tables,
  owed: readonly string[],
  decide: (rows: readonly DeliveryRow[]) => Promise<Changes<StoredRow>>,
): Promise<DeliveryRow[]> {
  return changeRows<DeliveryRow, StoredRow>(tables, DELIVERIES, owed, decide);
}

/** The same, decided row by row. */
export function changeEach(
  tables: Tables,
  owed: readonly string[],
  decide: (row: DeliveryRow) => Partial<StoredRow> | undefined,
): Promise<DeliveryRow[]> {
  return changeDeliveries(tables, owed, async (rows) => {
    const decided = rows.map((row) => [row.owed, decide(row)] as const);
    return new Map(decided.flatMap(([key, columns]) => (columns === undefined ? [] : [[key, columns]])));
  });
}

/** Reads the deliveries of a selection in blocks, each once, also while they are changed. */
export async function* blocksOf(
  tables: Tables,
  selection: Selection<typeof DELIVERIES>,
): AsyncGenerator<readonly DeliveryRow[]> {
  for (let after: DeliveryRow | undefined; ; await world.nextTurn()) {
    const block: DeliveryRow[] = await tables.find(DELIVERIES, { ...selection, after, limit: BULK });
    if (block.length > 0) yield block;
    after = block.at(-1);
    if (block.length < BULK) return;
  }
}

export function keysOf(rows: readonly { readonly owed: string }[]): string[] {
  return rows.map(({ owed }) => owed);
}
