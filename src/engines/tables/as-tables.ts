import { FuelError } from '../../base/errors.ts';
import { type AnyRow, type Key, plainColumns, type TablePlan } from '../../tables/plan.ts';
import { comparing, faultOfList, type Selected, selected } from '../../tables/selected.ts';
import type {
  AnyGroupQuery,
  AnyQuery,
  AnySelection,
  Tables,
  Write,
  WriteOptions,
} from '../../tables/tables.ts';

/** Which columns, and how many rows. */
export interface Wanted {
  readonly columns: readonly string[];
  readonly limit: number;
}

/** What an engine of tables does; `asTables` has checked what it is given. Numbers of rows are above 0, and no list is empty. */
export interface TablesEngine extends Pick<Tables, 'changed' | 'makeIndexes' | 'now'> {
  /** In the order of the selection; rows that are selected by their keys in any order. */
  select(table: TablePlan, found: Selected, wanted: Wanted): Promise<AnyRow[]>;
  /** The columns of the index in the first row of each group by the first column of the order: of all groups, or of these; in any order. */
  firsts(table: TablePlan, found: Selected, groups?: readonly Key[]): Promise<AnyRow[]>;
  count(table: TablePlan, found: Selected, max: number): Promise<number>;
  write(writes: readonly Write[], allOrNone: boolean): Promise<boolean[]>;
  /** Of a handle that is closed then. */
  destroy(): Promise<void>;
  close(): Promise<void>;
}

/** The port on an engine: what is the same for all of them. `name` is that of the store. */
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
      const found = selected(table, { index: 'key', equals: { [key]: keys } });
      const wanted = { columns: [...new Set([key, ...columns])], limit: keys.length };
      const rows = found.isNone ? [] : await engine.select(table, found, wanted);
      const byKey = new Map(rows.map((row) => [row[key] as Key, row]));
      return keys.map((each) => byKey.get(each)).filter((row) => row !== undefined);
    },
    async find(table: TablePlan, { columns = plainColumns(table), limit, ...selection }: AnyQuery) {
      assertOpen();
      const found = selected(table, selection);
      return limit <= 0 || found.isNone ? [] : engine.select(table, found, { columns, limit });
    },
    async firsts(table: TablePlan, { of, values, ...selection }: AnyGroupQuery) {
      assertOpen();
      const found = selected(table, selection);
      if (!found.isOneRun || found.order[0] !== of)
        throw new TypeError(`${of} is not next in ${found.index}`);
      if (values?.length === 0) return [];
      const rows = await engine.firsts(table, found, values);
      return rows.sort(comparing([of], found.descending));
    },
    async count(table: TablePlan, selection: AnySelection, max: number) {
      assertOpen();
      const found = selected(table, selection);
      return max <= 0 || found.isNone ? 0 : Math.min(max, await engine.count(table, found, max));
    },
    async write(writes: readonly Write[], { allOrNone = false }: WriteOptions = {}) {
      assertOpen();
      const fault = faultOfList(writes);
      if (fault !== undefined) throw new FuelError('ITEM_REFUSED', fault);
      return writes.length === 0 ? [] : engine.write(writes, allOrNone);
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
  return tables as unknown as Tables; // with the types of the rows
}
