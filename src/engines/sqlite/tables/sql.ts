import {
  isNullable,
  kindOf,
  plainColumns,
  type StorePlan,
  type TablePlan,
  type Value,
} from '../../../tables/plan.ts';
import type { Selected } from '../../../tables/selected.ts';
import type { Wanted } from '../../tables/as-tables.ts';
import { createIndexes, haveValues, inOrder, quoted, whereAll } from '../../tables/sql.ts';

const TYPES = { text: 'TEXT', integer: 'INTEGER', number: 'REAL', time: 'INTEGER', bytes: 'BLOB' } as const;
/**
 * The row number in a table whose key is a text. It is shorter than the key in the indexes, and ascends as rows are
 * inserted.
 */
const ROW_NUMBER = '_row';

/** A statement with its values. */
export interface Sql {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** Returns the column by which SQLite stores the rows. */
export function rowColumn({ columns, key }: TablePlan): string {
  return columns[key] === 'integer' ? key : ROW_NUMBER;
}

/** Makes what is missing. A later version adds tables and indexes to existing ones. */
export function schemaOf({ tables }: StorePlan): string {
  return tables
    .flatMap((table) => [...tablesOf(table), ...(table.indexesLater === true ? [] : indexesOf(table))])
    .join(';\n');
}

export function indexesOf(table: TablePlan): string[] {
  return createIndexes(table, `"${table.name}"`);
}

function tablesOf(table: TablePlan): string[] {
  const { name, key, aside = [] } = table;
  const row = rowColumn(table);
  const column = (each: string): string =>
    `"${each}" ${TYPES[kindOf(table, each)]}${isNullable(table, each) ? '' : ' NOT NULL'}`;
  const own = plainColumns(table).map((each) =>
    each === row ? `"${key}" INTEGER PRIMARY KEY` : column(each),
  );
  if (row !== key) own.unshift(`"${row}" INTEGER PRIMARY KEY`);
  const made = [`CREATE TABLE IF NOT EXISTS "${name}" (${own.join(', ')}) STRICT`];
  if (row !== key) made.push(`CREATE UNIQUE INDEX IF NOT EXISTS "${name} key" ON "${name}" ("${key}")`);
  const reference = `"${row}" INTEGER PRIMARY KEY REFERENCES "${name}" ON DELETE CASCADE`;
  const beside = aside.map(
    (each) =>
      `CREATE TABLE IF NOT EXISTS ${asideOf(table, each)} (${reference}, "${each}" ${TYPES[kindOf(table, each)]} NOT NULL) STRICT`,
  );
  return [...made, ...beside];
}

/** Returns the name of the table of a column that is kept aside. It has no row if the column has no value. */
export function asideOf({ name }: TablePlan, column: string): string {
  return `"${name} aside ${column}"`;
}

/** Returns the `FROM`, which joins the tables of those columns that are kept aside. */
export function from(table: TablePlan, index: string, columns: readonly string[]): string {
  const { name, key, aside = [] } = table;
  const row = rowColumn(table);
  const by = index === 'key' && row === key ? 'NOT INDEXED' : `INDEXED BY "${name} ${index}"`;
  const beside = columns.filter((each) => aside.includes(each));
  const joined = beside.map((each) => ` LEFT JOIN ${asideOf(table, each)} USING ("${row}")`);
  return `FROM "${name}" ${by}${joined.join('')}`;
}

/**
 * Returns the `WHERE` of a selection. If it continues after a place, reading must begin there, so the limit on that side
 * is marked with `+` and only filters. The equal values are those of `terms` if it is given.
 */
export function where(found: Selected, terms?: readonly string[]): Sql {
  const { equals, order, from, to, after, descending, present } = found;
  const [first = ''] = order;
  const conditions: string[] = [];
  const values: Value[] = [];
  const also = (condition: string, more: readonly Value[]): void => {
    conditions.push(condition);
    for (const value of more) values.push(value);
  };
  for (const [n, [column, given]] of equals.entries()) {
    if (terms !== undefined) also(`"${column}" = ${terms[n]}`, []);
    else if (given.length === 1) also(`"${column}" = ?`, given);
    else also(`"${column}" IN (SELECT value FROM json_each(?))`, [JSON.stringify(given)]);
  }
  const isFilter = (side: 'from' | 'to'): boolean => after !== undefined && descending === (side === 'to');
  if (from !== undefined) also(`${isFilter('from') ? '+' : ''}"${first}" >= ?`, [from]);
  if (to !== undefined) also(`${isFilter('to') ? '+' : ''}"${first}" <= ?`, [to]);
  for (const condition of haveValues(present)) also(condition, []);
  if (after !== undefined) {
    const place = order.slice(0, after.length);
    also(`(${quoted(place)}) ${descending ? '<' : '>'} (${marks(after)})`, after);
  }
  return { sql: whereAll(conditions), values };
}

/** Reads the first rows of selections that have the same order, in that order. */
export function selectOf(table: TablePlan, runs: readonly Selected[], { columns, limit }: Wanted): Sql {
  const [{ order, descending } = { order: [], descending: false }] = runs;
  const parts = runs.map((run) => {
    const { sql, values } = where(run);
    return { sql: `SELECT ${quoted(columns)} ${from(table, run.index, columns)}${sql}`, values };
  });
  const by = inOrder(order, { descending });
  const read = parts.map(({ sql }) => sql).join(' UNION ALL ');
  return {
    sql: `${read}${by === '' ? '' : ` ORDER BY ${by}`} LIMIT ?`,
    values: [...parts.flatMap(({ values }) => values), limit],
  };
}

/**
 * Finds where runs begin. Returns for each combination of equal values these and the first row's value in the first column
 * of the order; `null` for an empty run.
 */
export function startsOf(table: TablePlan, found: Selected): Sql {
  const { index, equals, order, descending } = found;
  const [first = ''] = order;
  const lists = equals.map((_, n) => `run${n}`);
  const { sql, values } = where(
    found,
    lists.map((list) => `${list}.value`),
  );
  const start = `SELECT "${first}" ${from(table, index, [])}${sql} ORDER BY ${inOrder(order, { descending })} LIMIT 1`;
  const columns = equals.map(([column], n) => `${lists[n]}.value AS "${column}"`);
  const each = lists.map((list) => `json_each(?) AS ${list}`);
  return {
    sql: `SELECT ${columns.join(', ')}, (${start}) AS "${first}" FROM ${each.join(' CROSS JOIN ')}`,
    values: [...values, ...equals.map(([, given]) => JSON.stringify(given))],
  };
}

export function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}
