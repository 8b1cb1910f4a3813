import { FuelError } from '../../base/errors.ts';
import { type AnyRow, type Key, plainColumns, type TablePlan } from '../../tables/plan.ts';
import {
  assertColumns,
  comparing,
  faultOfList,
  faultOfSelection,
  faultOfValues,
  type Selected,
  selected,
} from '../../tables/selected.ts';
import type {
  AnyGroupQuery,
  AnyQuery,
  AnySelection,
  Tables,
  Write,
  WriteOptions,
} from '../../tables/tables.ts';

/** The columns to read, the maximum number of rows, and the limit for the call if it is not that of the store. */
export interface Wanted {
  readonly columns: readonly string[];
  readonly limit: number;
  readonly withinMs?: number | undefined;
}

/**
 * The work of an engine of tables. `asTables` has checked the arguments: the engine gets no empty list, and no limit
 * below 1.
 */
export interface TablesEngine extends Pick<Tables, 'changed' | 'makeIndexes' | 'now'> {
  /** Returns rows in the order of the selection. Rows that are selected by their keys may come in any order. */
  select(table: TablePlan, found: Selected, wanted: Wanted): Promise<AnyRow[]>;
  /**
   * Groups the selection by the first column of its order, and returns the index's columns of each group's first row,
   * in any order. If `groups` is given, only these are returned.
   */
  firsts(table: TablePlan, found: Selected, groups?: readonly Key[]): Promise<AnyRow[]>;
  count(table: TablePlan, found: Selected, max: number): Promise<number>;
  /** Says for each write whether it was done. With `allOrNone` it passes that through `allDone` before it commits. */
  write(writes: readonly Write[], allOrNone: boolean): Promise<boolean[]>;
  /** Removes the tables and closes this handle. */
  destroy(): Promise<void>;
  close(): Promise<void>;
}

/** Thrown in a transaction to roll it back, since a guard does not hold and all or none was to be written. */
export const NONE_DONE = Symbol('none of the writes was done');

/** Returns what it is given if everything was done, and throws `NONE_DONE` otherwise. */
export function allDone(done: boolean[]): boolean[] {
  if (done.includes(false)) throw NONE_DONE;
  return done;
}

function refuse(fault: string | undefined): void {
  if (fault !== undefined) throw new FuelError('ITEM_REFUSED', fault);
}

function checked(table: TablePlan, selection: AnySelection): Selected {
  const found = selected(table, selection);
  refuse(faultOfSelection(table, found));
  return found;
}

function assertCount(count: unknown): void {
  if (!Number.isSafeInteger(count)) refuse(`${count} is not a number of rows`);
}

/** Makes the port out of an engine, with everything that is the same for all engines. `name` is the store's name. */
export function asTables(name: string, engine: TablesEngine): Tables {
  let isClosed = false;
  const assertOpen = (): void => {
    if (isClosed) throw new FuelError('STORE_CLOSED', `the tables of ${name} are closed`);
  };
  const tables = {
    changed: engine.changed,
    async get(table: TablePlan, keys: readonly Key[], columns: readonly string[] = plainColumns(table)) {
      assertOpen();
      const { key } = table;
      assertColumns(table, columns);
      const found = checked(table, { index: 'key', equals: { [key]: keys } });
      const wanted = { columns: [...new Set([key, ...columns])], limit: keys.length };
      const rows = found.isNone ? [] : await engine.select(table, found, wanted);
      const byKey = new Map(rows.map((row) => [row[key] as Key, row]));
      return keys.map((each) => byKey.get(each)).filter((row) => row !== undefined);
    },
    async find(table: TablePlan, query: AnyQuery) {
      assertOpen();
      const { columns = plainColumns(table), limit, withinMs, ...selection } = query;
      const found = checked(table, selection);
      assertColumns(table, columns);
      assertCount(limit);
      return limit <= 0 || found.isNone ? [] : engine.select(table, found, { columns, limit, withinMs });
    },
    async firsts(table: TablePlan, { of, values, ...selection }: AnyGroupQuery) {
      assertOpen();
      const found = checked(table, selection);
      if (!found.isOneRun || found.order[0] !== of)
        throw new TypeError(`${of} is not next in ${found.index}`);
      refuse(faultOfValues(table, of, values ?? []));
      if (values?.length === 0) return [];
      const rows = await engine.firsts(table, found, values);
      return rows.sort(comparing([of], found.descending));
    },
    async count(table: TablePlan, selection: AnySelection, max: number) {
      assertOpen();
      const found = checked(table, selection);
      assertCount(max);
      return max <= 0 || found.isNone ? 0 : Math.min(max, await engine.count(table, found, max));
    },
    async write(writes: readonly Write[], { allOrNone = false }: WriteOptions = {}) {
      assertOpen();
      refuse(faultOfList(writes));
      if (writes.length === 0) return [];
      try {
        return await engine.write(writes, allOrNone);
      } catch (error) {
        if (error !== NONE_DONE) throw error;
        return writes.map(() => false);
      }
    },
    async makeIndexes(table: TablePlan) {
      assertOpen();
      await engine.makeIndexes(table);
    },
    async now() {
      assertOpen();
      return engine.now();
    },
    async destroy() {
      assertOpen();
      isClosed = true;
      await engine.destroy();
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      await engine.close();
    },
  };
  return tables as unknown as Tables; // the rows get their types here
}
