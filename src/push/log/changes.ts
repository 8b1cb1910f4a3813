import { world } from '../../base/world.ts';
import type { TablePlan } from '../../tables/plan.ts';
import { change, type Selection, type Tables } from '../../tables/tables.ts';
import { DELIVERIES, type DeliveryRow } from './tables.ts';

/** How often a change is tried. A try fails only if another process has changed the row in between. */
const MAX_TRIES = 50;
/** Rows in one write, which takes some milliseconds of the event loop. */
const BULK = 250;

interface RowsToChange {
  readonly table: TablePlan;
  readonly keys: readonly string[];
  /** The columns that the decision needs; all that are not aside unless given. */
  readonly columns?: readonly string[];
}

/** The columns to set, by the key of the row. */
export type Changes<Columns> = ReadonlyMap<string, Partial<Columns>>;

/**
 * Reads rows, decides, and writes what was decided for rows that are still as they were read; reads the others and
 * decides again. Returns the changed rows as they are now. After an interruption the same call does the rest.
 */
export async function changeRows<Row extends { readonly version: number }, Columns = Row>(
  tables: Tables,
  { table, keys, columns }: RowsToChange,
  decide: (rows: readonly Row[]) => Promise<Changes<Columns>>,
): Promise<Row[]> {
  const changed: Row[] = [];
  const keyOf = (row: Row) => row[table.key as keyof Row] as string;
  let left = keys;
  for (let tries = 0; tries < MAX_TRIES && left.length > 0; tries++) {
    const rows = (await tables.get(table, left, columns as never)) as unknown as readonly Row[];
    const decided = await decide(rows);
    const next = rows.flatMap((row) => {
      const set = decided.get(keyOf(row));
      return set === undefined ? [] : [{ row, set: { ...set, version: row.version + 1 } }];
    });
    if (next.length === 0) return changed;
    const done = await tables.write(
      next.map(({ row, set }) => change(table, keyOf(row), set, { as: { version: row.version } })),
    );
    for (const [n, { row, set }] of next.entries()) if (done[n]) changed.push({ ...row, ...set });
    left = next.flatMap(({ row }, n) => (done[n] ? [] : [keyOf(row)]));
  }
  if (left.length > 0)
    throw new Error(`${left.length} rows of ${table.name} changed faster than they could be changed here`);
  return changed;
}

/** Like `changeRows`, with a decision for each row alone: `undefined` leaves it unchanged. */
export function changeEach<Row extends { readonly version: number }, Columns = Row>(
  tables: Tables,
  which: RowsToChange,
  decide: (row: Row) => Partial<Columns> | undefined,
): Promise<Row[]> {
  return changeRows<Row, Columns>(tables, which, async (rows) => {
    const changes = new Map<string, Partial<Columns>>();
    for (const row of rows) {
      const columns = decide(row);
      if (columns !== undefined) changes.set(row[which.table.key as keyof Row] as string, columns);
    }
    return changes;
  });
}

/** Reads the deliveries of a selection in blocks, each delivery once, even if it is changed meanwhile. */
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
