import type { AnyRow, IndexName, Key, PlainColumn, RowOf, StorePlan, TablePlan, Value } from './plan.ts';

type ColumnOf<T> = keyof RowOf<T> & string;
type NumberColumn<T> = {
  [K in keyof RowOf<T>]: Exclude<RowOf<T>[K], null> extends number ? K : never;
}[keyof RowOf<T>];

/** A part of an index. */
export interface Selection<T extends TablePlan> {
  readonly index: IndexName<T>;
  /** The index's first columns, each with a value or a list of distinct values. */
  readonly equals?: { readonly [K in keyof RowOf<T>]?: RowOf<T>[K] | readonly RowOf<T>[K][] };
  /** Limits of the column after those, both inclusive; a number may be infinite. */
  readonly range?: { readonly from?: Key | undefined; readonly to?: Key | undefined };
  readonly descending?: boolean;
  /** Only rows after this one in the order, whether it is still there or not. */
  readonly after?: Partial<RowOf<T>> | undefined;
}

export interface Query<T extends TablePlan, C extends ColumnOf<T>> extends Selection<T> {
  readonly limit: number;
  /** All that are not aside, unless given. */
  readonly columns?: readonly C[];
}

/** The first row of each group: the rows with one value in the column `of`, which is the one after those in `equals`. */
export interface GroupQuery<T extends TablePlan> extends Omit<Selection<T>, 'range' | 'after'> {
  readonly of: ColumnOf<T>;
  /** Only these groups: distinct values. */
  readonly values?: readonly Key[];
}

/**
 * A condition of a write: the row is missing; or it is there, and these columns are as they were read; or it is missing,
 * or its column is below this number.
 */
export type Guard<T extends TablePlan> =
  | 'missing'
  | { readonly as: Partial<RowOf<T>> }
  | { readonly below: { readonly [K in NumberColumn<T>]?: number } };

/** Made by `put`, `change` and `drop`. */
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

/** Inserts a row, or replaces all of it. */
export function put<T extends TablePlan>(table: T, row: RowOf<T>, guard?: Guard<T>): Write {
  const values = row as AnyRow;
  const { as, below } = typeof guard === 'object' ? (guard as { as?: AnyRow; below?: object }) : {};
  const [limit] = Object.entries(below ?? {}) as [string, number][];
  const missing = guard === 'missing';
  return { kind: 'put', table, key: values[table.key] as Key, row: values, missing, as, below: limit };
}

/** Changes columns, but the key, of a row that is there. */
export function change<T extends TablePlan>(
  table: T,
  key: Key,
  columns: Partial<RowOf<T>>,
  guard?: { readonly as: Partial<RowOf<T>> },
): Write {
  return { kind: 'change', table, key, row: columns as AnyRow, as: guard?.as as AnyRow | undefined };
}

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

/** Notifies its listeners soon after another process, thread or handle has written; at times without a reason. */
export interface ChangeSignal {
  /** Throws `STORE_CLOSED` after `close`. */
  add(listener: ChangeListener): void;
  remove(listener: ChangeListener): void;
  /** Notifies at once, in all threads where the engine can: for who has written what others wait for. */
  notify(): void;
}

/**
 * The tables of one store, as one process has them open. Each read is by a named index, and reads no more entries of it
 * than it returns rows, and one more for each run; a list of values in `equals` makes a run of each, and these are merged.
 * What is returned may be changed without changing the store.
 *
 * - `get` returns the rows of these keys that are there, in the order of the keys.
 * - `find` returns the rows of a selection in the order of the index's columns after those in `equals`: in an embedded store
 *   those of one moment. Continued `after` its last row it misses none that was there all the time, and repeats none.
 * - `firsts` returns the index's columns of the first row of each group, in the order of the groups, for one index entry each.
 * - `count` counts up to `max`.
 * - `write` does each write whose guard holds, and says for each whether it was done; a `drop` also where the row was gone. A row may be named
 *   once. In the order of the list, as far as it names another table. An embedded store does the list in one commit. A
 *   server may have done a part of it where it rejects, so what is written must be safe to repeat. With `allOrNone` every engine
 *   does all of them in one commit or, where a guard does not hold, none.
 *   Of several that write a row at once under the same guard one succeeds.
 * - `makeIndexes` makes the indexes of a table with `indexesLater`, however long it takes; until then nothing is found by them.
 * - `now` is the engine's clock, which all processes on it share: the server's, or the one that an embedded store was opened with.
 * - `destroy` removes the tables with all that is in them, and closes this handle. Others must not use them any more.
 * - After `close` every call rejects with `STORE_CLOSED`. Values that the plan does not permit reject with `ITEM_REFUSED`
 *   before anything is written; a store that can't be reached with `STORE_UNAVAILABLE`.
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

/** The same without the types of the rows, which no engine knows. */
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
}

export interface AnyGroupQuery extends Omit<AnySelection, 'range' | 'after'> {
  readonly of: string;
  readonly values?: readonly Key[];
}

export type { StorePlan };
/** Opens a store of an engine; a missing one is made. */
export type OpenTables = (plan: StorePlan) => Tables;
