import { columnsOfIndex, isNullable, type TablePlan } from '../../tables/plan.ts';

// These parts of SQL are the same in SQLite and PostgreSQL.

/** Quotes the names of columns, for a list of them. */
export function quoted(columns: readonly string[]): string {
  return columns.map((column) => `"${column}"`).join(', ');
}

/** Returns the terms of `ORDER BY`. */
export function inOrder(
  columns: readonly string[],
  { descending }: { readonly descending: boolean },
): string {
  return columns.map((column) => `"${column}"${descending ? ' DESC' : ''}`).join(', ');
}

/** Returns a condition for each of these columns. Together they are those of the partial index that has such rows. */
export function haveValues(columns: readonly string[]): string[] {
  return columns.map((column) => `"${column}" IS NOT NULL`);
}

/** Returns `WHERE` with these conditions; nothing if there are none. */
export function whereAll(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
}

/** Returns the statements that make a table's missing indexes. `on` is the table's name, as SQL quotes it. */
export function createIndexes(table: TablePlan, on: string): string[] {
  return Object.keys(table.indexes).map((index) => {
    const columns = columnsOfIndex(table, index);
    const present = haveValues(columns.filter((column) => isNullable(table, column)));
    const name = `"${table.name} ${index}"`;
    return `CREATE INDEX IF NOT EXISTS ${name} ON ${on} (${quoted(columns)})${whereAll(present)}`;
  });
}
