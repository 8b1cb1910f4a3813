import {
  columnsOfIndex,
  faultOf,
  isLimitOf,
  isNullable,
  isValueOf,
  type Key,
  type TablePlan,
  type Value,
} from './plan.ts';
import type { AnySelection, Write } from './tables.ts';

/** A selection in the form that adapters use. */
export interface Selected {
  readonly index: string;
  /** The first columns of the index, with the values of each. */
  readonly equals: readonly (readonly [column: string, values: readonly Value[]])[];
  /** The other columns. The last one makes the order total. */
  readonly order: readonly string[];
  /** The lower limit of the first column in the order. */
  readonly from: Value | undefined;
  /** The upper limit of the same column. */
  readonly to: Value | undefined;
  /** The place to continue after: a value for each column of the order. */
  readonly after: readonly Value[] | undefined;
  readonly descending: boolean;
  /** The columns of the index in which other rows may have no value. */
  readonly present: readonly string[];
  /** True if the rows have their order in the index already, so that there is nothing to merge. */
  readonly isOneRun: boolean;
  /** True if a list of values is empty, so that nothing is selected. */
  readonly isNone: boolean;
}

/** Converts a selection. Throws `TypeError` for columns that do not fit the index. `faultOfSelection` judges the values. */
export function selected(table: TablePlan, selection: AnySelection): Selected {
  const { index, equals: given = {}, range = {}, descending = false } = selection;
  const columns = columnsOfIndex(table, index);
  const names = Object.keys(given);
  const leading = columns.slice(0, names.length);
  if (leading.length !== names.length || !leading.every((name) => names.includes(name)))
    throw new TypeError(`the index ${index} of ${table.name} does not begin with ${names}`);
  const equals = leading.map((name) => [name, valuesIn(given[name] as Value)] as const);
  const order = columns.slice(leading.length);
  const { after: place } = selection;
  const after = place && order.map((name) => placeIn(place, name));
  return {
    index,
    equals,
    order,
    after,
    descending,
    from: range.from,
    to: range.to,
    present: columns.filter((name) => isNullable(table, name)),
    isOneRun: order.length === 0 || equals.every(([, list]) => list.length === 1),
    isNone: equals.some(([, list]) => list.length === 0),
  };
}

/** Returns why an engine must not be asked for this: it might take a value for a condition, or for none. */
export function faultOfSelection(table: TablePlan, found: Selected): string | undefined {
  const { equals, order, after = [], from, to } = found;
  const places = after.map((value, at) => [order[at] ?? '', [value]] as const);
  const faults = [...equals, ...places].map(([column, values]) => faultOfValues(table, column, values));
  const [column = 'no column'] = order;
  const limit = [from, to].find((each) => each !== undefined && !isLimitOf(table, column, each));
  return (
    faults.find((fault) => fault !== undefined) ??
    (limit === undefined ? undefined : never(table, column, limit))
  );
}

/** Returns why no row with one of these values in the column can be in an index. */
export function faultOfValues(
  table: TablePlan,
  column: string,
  values: readonly unknown[],
): string | undefined {
  const other = values.findIndex((value) => !isValueOf(table, column, value));
  return other < 0 ? undefined : never(table, column, values[other]);
}

function never({ name }: TablePlan, column: string, value: unknown): string {
  return `${column} of the table ${name} is never ${typeof value} ${value}`;
}

/** Throws `TypeError` if the table lacks one of these columns. */
export function assertColumns({ columns, name }: TablePlan, asked: readonly string[]): void {
  const other = asked.find((column) => !Object.hasOwn(columns, column));
  if (other !== undefined) throw new TypeError(`the table ${name} has no column ${other}`);
}

/** Returns a selection for each combination of values. These are the runs of the index, which are merged. */
export function runsOf(found: Selected): Selected[] {
  let runs: Selected['equals'][] = [[]];
  for (const [column, values] of found.equals)
    runs = runs.flatMap((run) => values.map((value) => [...run, [column, [value]]]));
  return runs.map((equals) => ({ ...found, equals, isOneRun: true }));
}

/** Returns the selection of the rows with one value in the first column of the order. */
export function groupOf(found: Selected, value: Value): Selected {
  const [of = '', ...order] = found.order;
  return { ...found, equals: [...found.equals, [of, [value]]], order };
}

/**
 * Splits a selection that continues after a place into selections that are single ranges of the index. The rows of each
 * share the first columns of the place, and lie beyond it in the next column.
 */
export function rangesOf(found: Selected): Selected[] {
  const { after, order, equals, from, to } = found;
  if (after === undefined) return [found];
  const [first] = after;
  const isWithin = (from === undefined || !isLess(first, from)) && (to === undefined || !isLess(to, first));
  const ranges = after.map((value, n): Selected => {
    const shared = order.slice(0, n).map((column, at) => [column, after.slice(at, at + 1)] as const);
    const range = { ...found, equals: [...equals, ...shared], order: order.slice(n), after: [value] };
    return n === 0 ? range : { ...range, from: undefined, to: undefined };
  });
  return isWithin ? ranges : ranges.slice(0, 1);
}

/** Makes a function that compares rows by these columns, in this order. */
export function comparing(columns: readonly string[], descending: boolean) {
  const [less, more] = descending ? [1, -1] : [-1, 1];
  return (a: Readonly<Record<string, Value>>, b: Readonly<Record<string, Value>>): number => {
    for (const column of columns) {
      const [left, right] = [a[column] ?? 0, b[column] ?? 0];
      if (left !== right) return left < right ? less : more;
    }
    return 0;
  };
}

function isLess(one: Value | undefined, other: Value | undefined): boolean {
  return (one ?? 0) < (other ?? 0);
}

/** Returns why a key, a guard or a row of a list does not fit its table, if so. Throws `TypeError` if the list names a row twice. */
export function faultOfList(writes: readonly Write[]): string | undefined {
  const seen = new Map<TablePlan, Set<Key>>();
  for (const write of writes) {
    const { table, key } = write;
    const keys = seen.get(table) ?? new Set();
    if (keys.has(key)) throw new TypeError(`the row ${key} of ${table.name} is written twice in one list`);
    seen.set(table, keys.add(key));
    const fault = faultOfWrite(write);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultOfWrite(write: Write): string | undefined {
  const { table, key, as = {}, kind } = write;
  const below = kind === 'put' ? write.below : undefined;
  if (!isValueOf(table, table.key, key)) return `${typeof key} ${key} is no key of the table ${table.name}`;
  if (kind === 'change' && Object.hasOwn(write.row, table.key)) return `a key of ${table.name} never changes`;
  if (below !== undefined && (!Number.isFinite(below[1]) || !isLimitOf(table, ...below)))
    return `${below[0]} of the table ${table.name} can't be below ${below[1]}`;
  const fault = faultOf(table, as, { isWhole: false });
  return fault ?? (kind === 'drop' ? undefined : faultOf(table, write.row, { isWhole: kind === 'put' }));
}

function valuesIn(given: Value | readonly Value[]): readonly Value[] {
  return Array.isArray(given) ? given : [given as Value];
}

function placeIn(place: Readonly<Record<string, Value>>, column: string): Value {
  const value = place[column];
  if (value === undefined || value === null)
    throw new TypeError(`the place to continue after has no ${column}`);
  return value;
}
