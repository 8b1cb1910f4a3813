/** A `time` is in whole milliseconds, and an engine with dates stores it as one. `?` marks a column that may be `null`. */
export type Kind = 'text' | 'integer' | 'number' | 'time' | 'bytes';
export type Column = Kind | `${Kind}?`;
export type Columns = Readonly<Record<string, Column>>;
export type Key = string | number;
export type Value = string | number | Uint8Array | null;

interface ValueOfKind {
  readonly text: string;
  readonly integer: number;
  readonly number: number;
  readonly time: number;
  readonly bytes: Uint8Array;
}
type ValueOf<C> = C extends `${infer K extends Kind}?`
  ? ValueOfKind[K] | null
  : C extends Kind
    ? ValueOfKind[C]
    : never;

/** A table as data. Names consist of lower-case letters and `_`. */
export interface TablePlan<
  C extends Columns = Columns,
  A extends string = string,
  I extends string = string,
> {
  readonly name: string;
  readonly columns: C;
  /** The unique column, a text or an integer. */
  readonly key: keyof C & string;
  /** Large columns. They are read only when they are asked for, and written only when they change. */
  readonly aside?: readonly (A & keyof C)[];
  /**
   * The indexes by name. The key is added as the last column if an index lacks it, so that each has a total order. A row is
   * in an index only if it has a value in all of its columns. There is always the index `key`, which has only the key.
   */
  readonly indexes: Readonly<Record<I, readonly (keyof C & string)[]>>;
  /** Leaves the indexes to `makeIndexes`, since it is faster to make them once the table is filled. */
  readonly indexesLater?: boolean;
  /** The column by which a cluster may spread the rows. Its value in a row never changes. */
  readonly shardedBy?: keyof C & string;
}

/** The tables of one store. They are opened together, and the embedded engine has them in one file. */
export interface StorePlan {
  /** The name of the embedded file, without its ending, and of the entry in `schema_versions`. */
  readonly name: string;
  /** A higher version adds tables and indexes. A store with a higher version is refused with `STORE_NEWER`. */
  readonly version: number;
  readonly tables: readonly TablePlan[];
  /** With `full` a commit survives a power cut. With `normal` a power cut may lose the last commits. */
  readonly durability: 'full' | 'normal';
  /** After this time a call on a server rejects with `STORE_UNAVAILABLE`, unless it brings a limit of its own. */
  readonly withinMs: number;
  /** The page size of an embedded file, by default 8 KiB. Smaller pages suit commits that change little in many places. */
  readonly pageBytes?: number;
  /** How much of an embedded file each connection keeps in memory, by default 2 MiB. */
  readonly cacheMiB?: number;
}

/** Infers the types of the rows. */
export function tablePlan<
  const C extends Columns,
  const A extends keyof C & string = never,
  const I extends string = string,
>(plan: TablePlan<C, A, I>): TablePlan<C, A, I> {
  return plan;
}

/** A whole row. */
export type RowOf<T> =
  T extends TablePlan<infer C, string, string> ? { readonly [K in keyof C]: ValueOf<C[K]> } : never;
/** The columns that are read by default. */
export type PlainColumn<T> =
  T extends TablePlan<infer C, infer A, string> ? Exclude<keyof C, A> & keyof RowOf<T> : never;
export type IndexName<T> = T extends TablePlan<Columns, string, infer I> ? I | 'key' : never;

/** A row whose types don't matter. */
export type AnyRow = Readonly<Record<string, Value>>;

export function isNullable({ columns }: TablePlan, column: string): boolean {
  return columns[column]?.endsWith('?') ?? false;
}

export function kindOf({ columns }: TablePlan, column: string): Kind {
  return columns[column]?.replace('?', '') as Kind;
}

/** Returns the columns of an index in their order, with the key. */
export function columnsOfIndex({ indexes, key, name }: TablePlan, index: string): readonly string[] {
  if (index === 'key') return [key];
  const columns = indexes[index];
  if (columns === undefined) throw new TypeError(`the table ${name} has no index ${index}`);
  return columns.includes(key) ? columns : [...columns, key];
}

/** Returns the columns that are not kept aside. */
export function plainColumns({ columns, aside = [] }: TablePlan): string[] {
  return Object.keys(columns).filter((name) => !aside.includes(name));
}

/** The last moment that a `Date` can represent. */
export const MAX_TIME = 8_640_000_000_000_000;
type Check = (value: unknown) => boolean;
const FITS: Readonly<Record<Kind, Check>> = {
  text: (value) => typeof value === 'string',
  integer: (value) => Number.isSafeInteger(value),
  number: (value) => Number.isFinite(value),
  time: (value) => Number.isSafeInteger(value) && Math.abs(value as number) <= MAX_TIME,
  bytes: (value) => value instanceof Uint8Array,
};
/** The checks of each table. They are kept, since each row is checked. */
const checks = new WeakMap<TablePlan, Readonly<Record<string, Check>>>();

function checksOf(table: TablePlan): Readonly<Record<string, Check>> {
  const known = checks.get(table);
  if (known !== undefined) return known;
  const made = Object.keys(table.columns).map((column): [string, Check] => {
    const fits = FITS[kindOf(table, column)];
    return [column, isNullable(table, column) ? (value) => value === null || fits(value) : fits];
  });
  checks.set(table, Object.fromEntries(made));
  return checksOf(table);
}

/** True if a row can have this value in this column, with which it is in an index. */
export function isValueOf(table: TablePlan, column: string, value: unknown): boolean {
  return value !== null && checksOf(table)[column]?.(value) === true;
}

/** True if a range of this column can end at this value. A number may be infinite. */
export function isLimitOf(table: TablePlan, column: string, value: unknown): boolean {
  const kind = kindOf(table, column);
  if (!Object.hasOwn(table.columns, column) || kind === 'bytes') return false;
  if (kind === 'text') return typeof value === 'string';
  return typeof value === 'number' && !Number.isNaN(value);
}

/** Returns why this row, or these columns of a row, can't be stored in the table; `undefined` if they can. */
export function faultOf(
  table: TablePlan,
  row: AnyRow,
  { isWhole }: { isWhole: boolean },
): string | undefined {
  const fits = checksOf(table);
  for (const column in isWhole ? fits : row) {
    const value = row[column];
    if (fits[column]?.(value) === true) continue;
    return `${column} of the table ${table.name} can't be ${typeof value} ${value}`;
  }
  const other = Object.keys(row).find((column) => fits[column] === undefined);
  return other === undefined ? undefined : `the table ${table.name} has no column ${other}`;
}
