import { Binary, type Document, type IndexDescription } from 'mongodb';
import {
  type AnyRow,
  columnsOfIndex,
  isNullable,
  type Key,
  type Kind,
  kindOf,
  MAX_TIME,
  type TablePlan,
  type Value,
} from '../../../tables/plan.ts';
import type { Selected } from '../../../tables/selected.ts';

/** How many runs of an index MongoDB merges in order (`internalQueryMaxScansToExplode`). If there are more, it sorts all entries. */
export const MAX_RUNS = 200;
/**
 * A limit below every value of a column. A condition with it selects the rows that have a value, which are those in an
 * index with the column.
 */
const LEAST: Readonly<Record<Kind, unknown>> = {
  text: '',
  integer: Number.NEGATIVE_INFINITY,
  number: Number.NEGATIVE_INFINITY,
  time: new Date(-MAX_TIME),
  bytes: undefined,
};

/** Returns the name of a column in a document, whose `_id` is the key. */
export function fieldOf({ key }: TablePlan, column: string): string {
  return column === key ? '_id' : column;
}

export function toStored(table: TablePlan, column: string, value: Value): unknown {
  if (value === null) return null;
  const kind = kindOf(table, column);
  // The limit of a selection may be infinite, but a date can't be.
  if (kind === 'time') return new Date(Math.min(Math.max(value as number, -MAX_TIME), MAX_TIME));
  return kind === 'bytes' ? new Binary(value as Uint8Array) : value;
}

/** Makes a document of columns. A column that is `null` is left out. */
export function toDocument(table: TablePlan, row: AnyRow): Document {
  const document: Document = {};
  for (const [column, value] of Object.entries(row)) {
    if (value !== null) document[fieldOf(table, column)] = toStored(table, column, value);
  }
  return document;
}

/** Makes a filter for these values. `null` also matches documents without the column. */
export function toFilter(table: TablePlan, columns: AnyRow): Document {
  const fields = Object.entries(columns).map(([column, value]) => [
    fieldOf(table, column),
    toStored(table, column, value),
  ]);
  return Object.fromEntries(fields);
}

export function toRow(table: TablePlan, columns: readonly string[], document: Document): AnyRow {
  const row: Record<string, Value> = {};
  for (const column of columns) row[column] = toValue(document[fieldOf(table, column)]);
  return row;
}

function toValue(stored: unknown): Value {
  if (stored instanceof Date) return stored.getTime();
  if (stored instanceof Binary) return stored.buffer;
  return (stored as Value | undefined) ?? null;
}

export function indexesOf(table: TablePlan): IndexDescription[] {
  return Object.keys(table.indexes).map((name) => {
    const columns = columnsOfIndex(table, name);
    const key = Object.fromEntries(columns.map((column) => [fieldOf(table, column), 1 as const]));
    const present = columns.filter((column) => isNullable(table, column));
    if (present.length === 0) return { name, key };
    const has = Object.fromEntries(present.map((column) => [column, { $exists: true }]));
    return { name, key, partialFilterExpression: has };
  });
}

export function hintOf({ index }: Pick<Selected, 'index'>): string {
  return index === 'key' ? '_id_' : index;
}

export function projectionOf(table: TablePlan, columns: readonly string[]): Document {
  const fields = Object.fromEntries(columns.map((column) => [fieldOf(table, column), 1]));
  return { _id: 0, ...fields };
}

export function sortOf(
  table: TablePlan,
  columns: readonly string[],
  descending: boolean,
): Record<string, 1 | -1> {
  return Object.fromEntries(columns.map((column) => [fieldOf(table, column), descending ? -1 : 1]));
}

/** Returns the filters of a selection. There are several only if it has more runs than MongoDB merges. */
export function filtersOf(table: TablePlan, found: Selected): Document[] {
  const bounds = boundsOf(table, found);
  return equalsOf(table, found).map((equals) => ({ $and: [equals, bounds] }));
}

/** Returns filters for the equal values, each with no more runs than MongoDB merges. */
function equalsOf(table: TablePlan, { equals, isOneRun }: Selected): Document[] {
  let parts: Document[] = [{}];
  let left = MAX_RUNS;
  for (const [column, values] of equals) {
    const some = isOneRun ? [values] : chunks(values, left);
    left = Math.max(1, Math.floor(left / values.length));
    parts = some.flatMap((chunk) => {
      const stored = chunk.map((value) => toStored(table, column, value));
      const its = stored.length === 1 ? stored[0] : { $in: stored };
      return parts.map((part) => ({ ...part, [fieldOf(table, column)]: its }));
    });
  }
  return parts;
}

/**
 * Returns the condition for groups by the first column of the order. Without a condition on that column MongoDB would
 * read every entry.
 */
export function groupsFilter(table: TablePlan, { order }: Selected, groups?: readonly Key[]): Document {
  const [of = ''] = order;
  const stored = groups?.map((value) => toStored(table, of, value));
  return {
    [fieldOf(table, of)]: stored === undefined ? { $gte: LEAST[kindOf(table, of)] } : { $in: stored },
  };
}

/** Returns the conditions of the range, and those that the other columns have values. */
function boundsOf(table: TablePlan, found: Selected): Document {
  const { equals, order, from, to, after, descending, present } = found;
  const [first = ''] = order;
  const bounds: Document = {};
  for (const column of present) {
    if (equals.every(([name]) => name !== column)) bounds[column] = { $gte: LEAST[kindOf(table, column)] };
  }
  const field = fieldOf(table, first);
  if (from !== undefined) bounds[field] = { ...bounds[field], $gte: toStored(table, first, from) };
  if (to !== undefined) bounds[field] = { ...bounds[field], $lte: toStored(table, first, to) };
  const [place] = after ?? [];
  if (place !== undefined)
    bounds[field] = { ...bounds[field], [descending ? '$lt' : '$gt']: toStored(table, first, place) };
  return bounds;
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, n) => items.slice(n * size, (n + 1) * size));
}
