import { columnsOfIndex, type Key, type TablePlan } from './plan.ts';
import { drop, type Query, type Selection, type Tables } from './tables.ts';

/** Removes the first `limit` rows of a selection, unless they have changed since they were found. Returns how many. */
export async function removeRows<T extends TablePlan>(
  tables: Tables,
  table: T,
  selection: Selection<T>,
  limit: number,
): Promise<number> {
  const columns = columnsOfIndex(table, selection.index);
  const found = await tables.find(table, { ...selection, columns, limit } as Query<T, never>);
  const drops = found.map((row) => {
    const { [table.key]: key, ...as } = row as Readonly<Record<string, Key>>;
    return drop<TablePlan>(table, key as Key, { as });
  });
  return (await tables.write(drops)).filter(Boolean).length;
}
