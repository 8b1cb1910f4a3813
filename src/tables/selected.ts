import { columnsOfIndex, faultOf, isNullable, type Key, type TablePlan, type Value } from './plan.ts';
import type { AnySelection, Write } from './tables.ts';

/** A selection as an adapter reads it. */
export interface Selected {
  readonly index: string;
  /** The first columns of the index, with the values of each. */
  readonly equals: readonly (readonly [column: string, values: readonly Value[]])[];
  /** The other columns, the last of which makes the order a total one. */
  readonly order: readonly string[];
  /** Of the first column in the order. */
  readonly from: Value | undefined;
  readonly to: Value | undefined;
  /** A value for each column of the order. */
  readonly after: readonly Value[] | undefined;
  readonly descending: boolean;
  /** Columns that rows of the index have a value in, and other rows may lack. */
  readonly present: readonly string[];
  /** Whether the rows are in order as they stand in the index: there is nothing to merge. */
  readonly isOneRun: boolean;
  /** Whether a list of values is empty. */
  readonly isNone: boolean;
}

/** Throws `TypeError` for what is no part of the index. */
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
    ...{ index, equals, order, after, descending, from: range.from, to: range.to },
    present: columns.filter((name) => isNullable(table, name)),
    isOneRun: order.length === 0 || equals.every(([, list]) => list.length === 1),
    isNone: equals.some(([, list]) => list.length === 0),
  };
}

/** A selection of each combination of values: the runs of the index that are merged. */
export function runsOf(found: Selected): Selected[] {
  let runs: Selected['equals'][] = [[]];
  for (const [column, values] of found.equals)
    runs = runs.flatMap((run) => values.map((value) => [...run, [column, [value]]]));
  return runs.map((equals) => ({ ...found, equals, isOneRun: true }));
}

/** The selection of the rows with one value in the first column of the order. */
export function groupOf(found: Selected, value: Value): Selected {
  const [of = '', ...order] = found.order;
  return { ...found, equals: [...found.equals, [of, [value]]], order };
}

/**
 * The selections that a place to continue after makes of one, each a single range of the index: what shares the first columns
 * of the place, and is beyond it in the next one.
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

/** Compares rows by columns in order. */
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

/** Why a list can't be written: a row does not fit its table. Throws `TypeError` where one is named twice. */
export function faultOfList(writes: readonly Write[]): string | undefined {
  const seen = new Map<TablePlan, Set<Key>>();
  for (const write of writes) {
    const { table, key, kind } = write;
    const keys = seen.get(table) ?? new Set();
    if (keys.has(key)) throw new TypeError(`the row ${key} of ${table.name} is written twice in one list`);
    seen.set(table, keys.add(key));
    const fault = kind === 'drop' ? undefined : faultOf(table, write.row, { isWhole: kind === 'put' });
    if (fault !== undefined) return fault;
  }
  return undefined;
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
