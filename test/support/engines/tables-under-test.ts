import { onTestFinished } from 'vitest';
import { type RowOf, type StorePlan, tablePlan } from '../../../src/tables/plan.ts';
import { put, type Tables } from '../../../src/tables/tables.ts';

/** A table with a text as its key, and columns aside. */
export const PARCELS = tablePlan({
  name: 'parcels',
  key: 'id',
  columns: {
    id: 'text',
    lane: 'text',
    place: 'integer',
    weight: 'number',
    due_at: 'time?',
    note: 'text?',
    letter: 'text?',
    photo: 'bytes?',
  },
  aside: ['letter', 'photo'],
  indexes: { by_lane: ['lane', 'place'], due: ['due_at'], due_in_lane: ['lane', 'due_at'] },
});
/** A table with an integer as its key. */
export const ENTRIES = tablePlan({
  name: 'entries',
  key: 'id',
  columns: { id: 'integer', account: 'integer', revision: 'integer', status: 'integer?', made_at: 'time?' },
  indexes: { by_account: ['account', 'status', 'made_at'], by_time: ['made_at'] },
});
/** A table with an index that is made after the table is filled. */
export const LATER = tablePlan({
  name: 'filled_first',
  key: 'id',
  columns: { id: 'integer', account: 'integer' },
  indexes: { by_account: ['account'] },
  indexesLater: true,
});
export const STORE: StorePlan = {
  name: 'tables_under_test',
  version: 1,
  tables: [PARCELS, ENTRIES, LATER],
  durability: 'full',
  withinMs: 20_000,
};

/** How an engine carried out one read of a table. */
export interface ReadPlan {
  readonly index: string;
  /** True if it read more than the requested part of the index, or sorted. */
  readonly isMore: boolean;
  /** The number of index entries and rows that it read, if the engine tells. */
  readonly read?: number;
}

export interface TablesUnderTest {
  readonly tables: Tables;
  /** Opens the same store, as another process does. */
  readonly second: () => Tables;
  /** Returns the plans of the reads in `work`; `undefined` if the engine does not show them. */
  readonly plansOf: ((work: () => Promise<unknown>) => Promise<readonly ReadPlan[]>) | undefined;
}

export type OpenTables = () => Promise<TablesUnderTest>;

export type Parcel = RowOf<typeof PARCELS>;
export type Entry = RowOf<typeof ENTRIES>;

export const parcel = (id: string, given: Partial<Parcel> = {}): Parcel => ({
  id,
  lane: 'a',
  place: 0,
  weight: 1.5,
  due_at: null,
  note: null,
  letter: null,
  photo: null,
  ...given,
});
export const entry = (id: number, given: Partial<Entry> = {}): Entry => ({
  id,
  account: 7,
  revision: 0,
  status: 1,
  made_at: 1_000,
  ...given,
});
export const idsOf = (rows: readonly { readonly id?: unknown }[]): string =>
  rows.map(({ id }) => id).join(' ');
export const all = <T>(rows: readonly T[]): boolean[] => rows.map(() => true);

/** Returns functions that open an empty store twice, as two processes do, and write rows into it. The end of the test closes it. */
export function tablesOf(open: OpenTables) {
  async function opened() {
    const { tables, second, plansOf } = await open();
    onTestFinished(() => tables.close());
    const other = second();
    onTestFinished(() => other.close());
    return { tables, other, plansOf };
  }
  async function withParcels(...parcels: readonly Parcel[]) {
    const stores = await opened();
    await stores.tables.write(parcels.map((each) => put(PARCELS, each)));
    return stores;
  }
  async function withEntries(...entries: readonly Entry[]) {
    const stores = await opened();
    await stores.tables.write(entries.map((each) => put(ENTRIES, each)));
    return stores;
  }
  return { opened, withParcels, withEntries };
}
