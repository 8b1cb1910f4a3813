import type { AnyRow, IndexName, Key, PlainColumn, RowOf, StorePlan, TablePlan, Value } from './plan.ts';

type ColumnOf<T> = keyof RowOf<T> & string;
type NumberColumn<T> = {
  [K in keyof RowOf<T>]: Exclude<RowOf<T>[K], null> extends number ? K : never;
}[keyof RowOf<T>];

/** A part of an index. */
export interface Selection<T extends TablePlan> {
  readonly index: IndexName<T>;
  /** The first columns of the index, each with a value or a list of distinct values. */
  readonly equals?: { readonly [K in keyof RowOf<T>]?: RowOf<T>[K] | readonly RowOf<T>[K][] };
  /** The inclusive limits of the column after those. A number may be infinite. */
  readonly range?: { readonly from?: Key | undefined; readonly to?: Key | undefined };
  readonly descending?: boolean;
  /** Selects only rows after this one in the order, whether it still exists or not. */
  readonly after?: Partial<RowOf<T>> | undefined;
}

export interface Query<T extends TablePlan, C extends ColumnOf<T>> extends Selection<T> {
  readonly limit: number;
  /** The columns to read; by default all that are not kept aside. */
  readonly columns?: readonly C[];
  /** The limit for this call on a server, if it is not that of the store. */
  readonly withinMs?: number | undefined;
}

/** Asks for the first row of each group. A group has one value in the column `of`, which follows those in `equals`. */
export interface GroupQuery<T extends TablePlan> extends Omit<Selection<T>, 'range' | 'after'> {
  readonly of: ColumnOf<T>;
  /** The distinct values of the groups that are asked for; by default all groups. */
  readonly values?: readonly Key[];
}

/**
 * The condition of a write. `missing`: the row does not exist. `as`: it exists, and these columns are as they were read.
 * `below`: it does not exist, or its column is below this number.
 */
export type Guard<T extends TablePlan> =
  | 'missing'
  | { readonly as: Partial<RowOf<T>> }
  | { readonly below: { readonly [K in NumberColumn<T>]?: number } };

/** A write, which `put`, `change` and `drop` make. */
export type Write = {
  readonly table: TablePlan;
  readonly key: Key;
  readonly as?: AnyRow | undefined;
} & (
  | {
      readonly kind: 'put';
      readonly row: AnyRow;
      readonly missing: boolean;
      readonly below?: readonly [column: string, limit: number] | undefined;
    }
  | { readonly kind: 'change'; readonly row: AnyRow }
  | { readonly kind: 'drop' }
);

/** Inserts a row, or replaces the whole row. */
export function put<T extends TablePlan>(table: T, row: RowOf<T>, guard?: Guard<T>): Write {
  const values = row as AnyRow;
  const { as, below } = typeof guard === 'object' ? (guard as { as?: AnyRow; below?: object }) : {};
  const [limit] = Object.entries(below ?? {}) as [string, number][];
  const missing = guard === 'missing';
  return { kind: 'put', table, key: values[table.key] as Key, row: values, missing, as, below: limit };
}

/** Changes columns of an existing row, except for its key. */
export function change<T extends TablePlan>(
  table: T,
  key: Key,
  columns: Partial<RowOf<T>>,
  guard?: { readonly as: Partial<RowOf<T>> },
): Write {
  return { kind: 'change', table, key, row: columns as AnyRow, as: guard?.as as AnyRow | undefined };
}

/** Removes a row. */
export function drop<T extends TablePlan>(
  table: T,
  key: Key,
  guard?: { readonly as: Partial<RowOf<T>> },
): Write {
  return { kind: 'drop', table, key, as: guard?.as as AnyRow | undefined };
}

/** Called on the listener's own thread. */
export interface ChangeListener {
  notify(): void;
}

/**
 * Notifies its listeners soon after another process, thread or handle has written. It may also do so without a reason.
 */
export interface ChangeSignal {
  /** Throws `STORE_CLOSED` after `close`. */
  add(listener: ChangeListener): void;
  remove(listener: ChangeListener): void;
  /** Notifies at once, and in all threads if the engine can. Called after a write that others wait for. */
  notify(): void;
}

/**
 * The tables of one store that a process has opened. A read uses a named index. Each combination of values in `equals` makes
 * a run, and the runs are merged. A read of one run reads no more entries of the index than it returns rows, and one more;
 * of many runs it reads one entry each, and more only of those that can reach the rows it returns.
 * The caller may change what is returned without changing the store.
 *
 * - `get` returns the existing rows with these keys, in the order of the keys.
 * - `find` returns the rows of a selection in the order of the index's columns after those in `equals`. In an embedded
 *   store they are those of one moment, unless more than 32 runs are merged. A `find` that continues `after` the last row
 *   of another one misses no row that existed all the time in the same run, and repeats none.
 * - `firsts` returns the index's columns of the first row of each group, in the order of the groups. It reads one index
 *   entry for each.
 * - `count` counts up to `max`.
 * - `write` does each write whose guard holds, and says for each whether it was done. A `drop` also counts as done if there
 *   is no such row. The list may name a row only once. Writes of different tables are done in the order of the list. An
 *   embedded store commits the list at once. If a server rejects the list, it may have done a part of it, so writes must be
 *   safe to repeat. With `allOrNone` every engine commits all of them at once or, if a guard does not hold, none. If
 *   several processes write a row at once under the same guard, one of them succeeds.
 * - `makeIndexes` makes the indexes of a table with `indexesLater`, however long that takes. Until then they find nothing.
 * - `now` reads the clock of the engine, which all its processes share: that of the server, or the one that an embedded
 *   store was opened with.
 * - `destroy` removes the tables with all rows, and closes this handle. Other handles must not be used any more.
 * - After `close` every call rejects with `STORE_CLOSED`. Values that the plan does not permit reject with `ITEM_REFUSED`,
 *   also those in keys, guards, selections and limits, and nothing is read or written. If the store is unavailable, calls reject with `STORE_UNAVAILABLE`.
 */
export interface Tables {
  readonly changed: ChangeSignal;
  get<T extends TablePlan, C extends ColumnOf<T> = PlainColumn<T>>(
    table: T,
    keys: readonly Key[],
    columns?: readonly C[],
  ): Promise<Pick<RowOf<T>, C>[]>;
  find<T extends TablePlan, C extends ColumnOf<T> = PlainColumn<T>>(
    table: T,
    query: Query<T, C>,
  ): Promise<Pick<RowOf<T>, C>[]>;
  firsts<T extends TablePlan>(table: T, query: GroupQuery<T>): Promise<Partial<RowOf<T>>[]>;
  count<T extends TablePlan>(table: T, selection: Selection<T>, max: number): Promise<number>;
  write(writes: readonly Write[], options?: WriteOptions): Promise<boolean[]>;
  makeIndexes(table: TablePlan): Promise<void>;
  now(): Promise<number>;
  destroy(): Promise<void>;
  close(): Promise<void>;
}

export interface WriteOptions {
  readonly allOrNone?: boolean;
}

/** A selection without the types of the rows, which no engine knows. */
export interface AnySelection {
  readonly index: string;
  readonly equals?: Readonly<Record<string, Value | readonly Value[]>>;
  readonly range?: { readonly from?: Key | undefined; readonly to?: Key | undefined };
  readonly descending?: boolean;
  readonly after?: AnyRow | undefined;
}

export interface AnyQuery extends AnySelection {
  readonly limit: number;
  readonly columns?: readonly string[];
  readonly withinMs?: number | undefined;
}

export interface AnyGroupQuery extends Omit<AnySelection, 'range' | 'after'> {
  readonly of: string;
  readonly values?: readonly Key[];
}

export type { StorePlan };
/** Opens a store of an engine, and makes a missing one. */
export type OpenTables = (plan: StorePlan) => Tables;
