import { describe, expect, onTestFinished, test } from 'vitest';
import { type RowOf, type StorePlan, tablePlan } from '../../src/tables/plan.ts';
import { removeRows } from '../../src/tables/remove-rows.ts';
import { change, drop, put, type Query, type Tables } from '../../src/tables/tables.ts';

/** A table with a text as its key, and columns aside. */
export const PARCELS = tablePlan({
  name: 'parcels',
  key: 'id',
  columns: {
    ...{ id: 'text', lane: 'text', place: 'integer', weight: 'number', due_at: 'time?', note: 'text?' },
    ...{ letter: 'text?', photo: 'bytes?' },
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

type Parcel = RowOf<typeof PARCELS>;
type Entry = RowOf<typeof ENTRIES>;

const parcel = (id: string, given: Partial<Parcel> = {}): Parcel => ({
  ...{ id, lane: 'a', place: 0, weight: 1.5, due_at: null, note: null, letter: null, photo: null },
  ...given,
});
const entry = (id: number, given: Partial<Entry> = {}): Entry => ({
  ...{ id, account: 7, revision: 0, status: 1, made_at: 1_000 },
  ...given,
});
const idsOf = (rows: readonly { readonly id?: unknown }[]): string => rows.map(({ id }) => id).join(' ');
const all = <T>(rows: readonly T[]): boolean[] => rows.map(() => true);

/** The contract of every engine of tables. `open` returns an empty store, which the suite closes. */
export function tablesContract(open: () => Promise<TablesUnderTest>): void {
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

  describe('a row', () => {
    test('is read as it was written, what is aside only when it is asked for', async () => {
      const photo = new Uint8Array([0, 1, 255]);
      const note = 'ä\u0000"';
      const whole = parcel('p', { place: 2 ** 53 - 1, weight: 0.1, due_at: 5, note, letter: 'long', photo });
      const { tables, other } = await withParcels(whole, parcel('q'));
      const { letter: _, photo: __, ...plain } = whole;
      expect(await other.get(PARCELS, ['p'])).toEqual([plain]);
      const columns = ['letter', 'photo', 'weight'] as const;
      const [found] = await other.find(PARCELS, { index: 'key', limit: 1, columns });
      expect(found).toMatchObject({ letter: 'long', weight: 0.1 });
      expect([...(found?.photo ?? [])]).toEqual([...photo]);
      expect(await tables.get(PARCELS, ['q'], ['id', 'letter', 'photo'])).toEqual([
        { id: 'q', letter: null, photo: null },
      ]);
    });

    test('that is asked for by its key is left out where it is missing; the others come in the order of the keys', async () => {
      const { tables } = await withEntries(entry(1), entry(2), entry(3));
      expect(idsOf(await tables.get(ENTRIES, [3, 9, 1]))).toBe('3 1');
      expect(await tables.get(ENTRIES, [])).toEqual([]);
    });

    test('can be changed by whoever has read it without changing the store', async () => {
      const { tables } = await withParcels(parcel('p', { photo: new Uint8Array([1]) }));
      const read = () => tables.get(PARCELS, ['p'], ['id', 'lane', 'photo']);
      const [found] = await read();
      Object.assign(found ?? {}, { lane: 'changed' });
      found?.photo?.fill(9);
      expect(await read()).toEqual([{ id: 'p', lane: 'a', photo: expect.objectContaining({ 0: 1 }) }]);
    });

    test('that the plan does not permit is refused, and nothing of its list is written', async () => {
      const { tables } = await opened();
      const refused = [
        parcel('p', { place: 0.5 }),
        parcel('p', { weight: Number.NaN }),
        parcel('p', { due_at: 9e15 }),
        parcel('p', { lane: null as unknown as string }),
        parcel('p', { note: 5 as unknown as string }),
        { ...parcel('p'), other: 1 },
      ];
      for (const row of refused) {
        const writing = tables.write([put(PARCELS, parcel('first')), put(PARCELS, row)]);
        await expect(writing).rejects.toMatchObject({ code: 'ITEM_REFUSED' });
      }
      expect(await tables.count(PARCELS, { index: 'key' }, 10)).toBe(0);
    });
  });

  describe('find', () => {
    const lanes = ['a', 'a', 'b', 'a', 'c', 'b'].map((lane, n) => parcel(`p${n}`, { lane, place: 10 - n }));

    test('returns the rows of a selection in the order of the index, either way, up to the limit', async () => {
      const { tables } = await withParcels(...lanes);
      const inLane = { index: 'by_lane', equals: { lane: 'a' } } as const;
      expect(idsOf(await tables.find(PARCELS, { ...inLane, limit: 9 }))).toBe('p3 p1 p0');
      expect(idsOf(await tables.find(PARCELS, { ...inLane, descending: true, limit: 2 }))).toBe('p0 p1');
      expect(await tables.find(PARCELS, { ...inLane, limit: 0 })).toEqual([]);
      const range = { from: 7, to: 9 };
      expect(idsOf(await tables.find(PARCELS, { ...inLane, range, limit: 9 }))).toBe('p3 p1');
      expect(idsOf(await tables.find(PARCELS, { index: 'key', range: { from: 'p4' }, limit: 9 }))).toBe(
        'p4 p5',
      );
      expect(idsOf(await tables.find(PARCELS, { index: 'by_lane', limit: 9 }))).toBe('p3 p1 p0 p5 p2 p4');
    });

    test('merges the runs of several values in the order of the rest of the index', async () => {
      const entries = Array.from({ length: 60 }, (_, n) =>
        entry(n, { account: n % 4, status: n % 3, made_at: Math.floor(n / 7) }),
      );
      const { tables } = await withEntries(...entries);
      const equals = { account: [0, 2, 3], status: [2, 0] };
      const isAsked = ({ account, status }: Entry) => account !== 1 && status !== 1;
      for (const descending of [false, true]) {
        const expected = entries.filter(isAsked).map(({ id }) => id);
        if (descending) expected.reverse();
        const found: number[] = [];
        let after: Pick<Entry, 'id' | 'made_at'> | undefined;
        do {
          const page = await tables.find(ENTRIES, {
            index: 'by_account',
            equals,
            descending,
            after,
            limit: 7,
          });
          found.push(...page.map(({ id }) => id));
          after = page.at(-1);
        } while (after !== undefined);
        expect(found).toEqual(expected);
      }
      expect(await tables.find(ENTRIES, { index: 'by_account', equals: { account: [] }, limit: 7 })).toEqual(
        [],
      );
    });

    test('merges more runs than an engine takes at once', async () => {
      const entries = Array.from({ length: 600 }, (_, n) => entry(n, { account: n % 300, made_at: 600 - n }));
      const { tables } = await withEntries(...entries);
      const equals = { account: Array.from({ length: 300 }, (_, n) => n), status: [1, 2] };
      const newest = await tables.find(ENTRIES, {
        index: 'by_account',
        equals,
        descending: true,
        limit: 5,
        columns: ['id'],
      });
      expect(newest).toMatchObject([0, 1, 2, 3, 4].map((id) => ({ id })));
    });

    test('has only rows in an index that have a value in each of its columns', async () => {
      const { tables } = await withParcels(
        parcel('none'),
        parcel('due', { due_at: -5 }),
        parcel('b', { lane: 'b', due_at: 3 }),
      );
      expect(idsOf(await tables.find(PARCELS, { index: 'due', limit: 9 }))).toBe('due b');
      const inLane = { index: 'due_in_lane', equals: { lane: 'a' } } as const;
      expect(idsOf(await tables.find(PARCELS, { ...inLane, limit: 9 }))).toBe('due');
      expect(await tables.count(PARCELS, inLane, 9)).toBe(1);
      await tables.write([change(PARCELS, 'due', { due_at: null })]);
      expect(await tables.find(PARCELS, { ...inLane, limit: 9 })).toEqual([]);
    });

    test.each([false, true])(
      'continued after its last row misses none, though rows come and go (descending: %s)',
      async (descending) => {
        const rows = Array.from({ length: 40 }, (_, n) =>
          parcel(`p${String(n).padStart(2, '0')}`, { place: Math.floor(n / 9) }),
        );
        const { tables, other } = await withParcels(...rows);
        const found: string[] = [];
        for (let after: Pick<Parcel, 'id' | 'place'> | undefined; ; ) {
          const query = {
            index: 'by_lane',
            equals: { lane: 'a' },
            descending,
            limit: 4,
            range: { from: 0, to: 3 },
          } as const;
          const page = await tables.find(PARCELS, { ...query, after });
          if (page.length === 0) break;
          found.push(...page.map(({ id }) => id));
          after = page.at(-1);
          await other.write([
            drop(PARCELS, found.at(-1) ?? ''),
            put(PARCELS, parcel(`new${found.length}`, { lane: 'b' })),
          ]);
        }
        const expected = rows.filter(({ place }) => place <= 3).map(({ id }) => id);
        expect(found).toEqual(descending ? expected.reverse() : expected);
      },
    );

    test.each(['by_lane', 'due_in_lane'] as const)('takes infinite limits: %s', async (index) => {
      const { tables } = await withParcels(...[1, 2].map((n) => parcel(`p${n}`, { place: n, due_at: n })));
      const within = async (from: number, to: number) =>
        idsOf(await tables.find(PARCELS, { index, equals: { lane: 'a' }, range: { from, to }, limit: 9 }));
      const endless = Number.POSITIVE_INFINITY;
      expect(await within(-endless, endless)).toBe('p1 p2');
      expect(await within(2, endless)).toBe('p2');
      expect(await within(endless, endless)).toBe('');
      expect(await within(-endless, -endless)).toBe('');
    });

    test('refuses what is no part of the index', async () => {
      const { tables } = await opened();
      const wrong = { index: 'by_lane', equals: { place: 1 }, limit: 1 } as const;
      await expect(tables.find(PARCELS, wrong)).rejects.toThrow(TypeError);
      await expect(
        tables.find(PARCELS, { index: 'by_lane', after: { lane: 'a' }, limit: 1 }),
      ).rejects.toThrow(TypeError);
      await expect(tables.find(PARCELS, { index: 'none' as 'key', limit: 1 })).rejects.toThrow(TypeError);
    });
  });

  describe('firsts', () => {
    test('returns the first row of each group, or the last, of all or of some', async () => {
      const { tables } = await withParcels(
        ...[
          parcel('a1', { due_at: 5 }),
          parcel('a2', { due_at: 2 }),
          parcel('a3', { due_at: 2 }),
          parcel('a4'),
        ],
        ...[
          parcel('b1', { lane: 'b', due_at: 9 }),
          parcel('c1', { lane: 'c' }),
          parcel('d1', { lane: 'd', due_at: 1 }),
        ],
      );
      const query = { index: 'due_in_lane', of: 'lane' } as const;
      const a2 = { lane: 'a', due_at: 2, id: 'a2' };
      const [b1, d1] = [
        { lane: 'b', due_at: 9, id: 'b1' },
        { lane: 'd', due_at: 1, id: 'd1' },
      ];
      expect(await tables.firsts(PARCELS, query)).toEqual([a2, b1, d1]);
      expect(await tables.firsts(PARCELS, { ...query, values: [] })).toEqual([]);
      expect(await tables.firsts(PARCELS, { ...query, values: ['d', 'x', 'a'] })).toEqual([a2, d1]);
      const last = await tables.firsts(PARCELS, { ...query, descending: true, values: ['a', 'b'] });
      expect(idsOf(last)).toBe('b1 a1');
    });

    test('groups what follows equal values', async () => {
      const { tables } = await withEntries(
        entry(1, { status: 2 }),
        entry(2, { status: 1 }),
        entry(3, { account: 8 }),
        entry(4, { status: 2, made_at: 1 }),
      );
      const query = { index: 'by_account', equals: { account: 7 }, of: 'status' } as const;
      expect(idsOf(await tables.firsts(ENTRIES, query))).toBe('2 4');
      expect(
        await tables.firsts(ENTRIES, { ...query, of: 'made_at' as 'status' }).catch((error) => error),
      ).toBeInstanceOf(TypeError);
    });
  });

  test('count counts a selection, up to a number', async () => {
    const { tables } = await withEntries(
      ...Array.from({ length: 30 }, (_, n) => entry(n, { status: n % 3, made_at: n })),
    );
    const ofAccount = { index: 'by_account', equals: { account: 7, status: [1, 2] } } as const;
    expect(await tables.count(ENTRIES, ofAccount, 100)).toBe(20);
    expect(await tables.count(ENTRIES, ofAccount, 15)).toBe(15);
    expect(await tables.count(ENTRIES, ofAccount, 0)).toBe(0);
    expect(await tables.count(ENTRIES, { ...ofAccount, range: { from: 10, to: 15 } }, 100)).toBe(4);
    expect(await tables.count(ENTRIES, { index: 'by_account', equals: { account: 8 } }, 9)).toBe(0);
  });

  test('the first rows of a selection are removed, with what is aside, up to a number', async () => {
    const { tables, other } = await withParcels(
      ...Array.from({ length: 9 }, (_, n) => parcel(`p${n}`, { due_at: 9 - n, letter: 'x' })),
    );
    const upTo6 = () => removeRows(tables, PARCELS, { index: 'due', range: { to: 6 } }, 4);
    expect(await upTo6()).toBe(4);
    expect(idsOf(await other.find(PARCELS, { index: 'key', limit: 9 }))).toBe('p0 p1 p2 p3 p4');
    expect([await upTo6(), await upTo6()]).toEqual([2, 0]);
    await tables.write([put(PARCELS, parcel('p8', { letter: 'new' }))]);
    expect(await tables.get(PARCELS, ['p8'], ['letter'])).toMatchObject([{ letter: 'new' }]);
  });

  describe('a write', () => {
    const letters = async (tables: Tables, ...keys: string[]) =>
      (await tables.get(PARCELS, keys, ['id', 'note', 'letter'])).map(
        ({ id, note, letter }) => `${id} ${note} ${letter}`,
      );

    test('of a whole row inserts it or replaces all of it', async () => {
      const { tables, other } = await withParcels(parcel('p', { note: 'old', letter: 'old' }));
      const rows = [parcel('p', { lane: 'b', letter: 'new' }), parcel('q')];
      expect(await other.write(rows.map((row) => put(PARCELS, row)))).toEqual(all(rows));
      expect(await tables.get(PARCELS, ['p', 'q'], ['id', 'lane', 'note', 'letter'])).toEqual([
        { id: 'p', lane: 'b', note: null, letter: 'new' },
        { id: 'q', lane: 'a', note: null, letter: null },
      ]);
    });

    test('of columns leaves the others, and makes no row', async () => {
      const { tables } = await withParcels(parcel('p', { note: 'n', letter: 'l', due_at: 3 }), parcel('q'));
      const writes = [
        change(PARCELS, 'p', { letter: 'changed', due_at: null }),
        change(PARCELS, 'q', { note: 'changed' }),
        change(PARCELS, 'missing', { note: 'x' }),
      ];
      expect(await tables.write(writes)).toEqual([true, true, false]);
      expect(await letters(tables, 'p', 'q', 'missing')).toEqual(['p n changed', 'q changed null']);
      expect(
        await tables.write([change(PARCELS, 'p', { letter: 'again' }, { as: { note: 'other' } })]),
      ).toEqual([false]);
      expect(
        await tables.write([change(PARCELS, 'p', { letter: 'again' }, { as: { note: 'n', due_at: null } })]),
      ).toEqual([true]);
      expect(await letters(tables, 'p')).toEqual(['p n again']);
    });

    test('that needs the row to be missing leaves one that is there', async () => {
      const { tables, other } = await withParcels(parcel('p', { letter: 'old' }));
      const rows = ['p', 'q'].map((id) => put(PARCELS, parcel(id, { letter: 'new' }), 'missing'));
      expect(await other.write(rows)).toEqual([false, true]);
      expect(await tables.write(rows)).toEqual([false, false]);
      expect(await letters(tables, 'p', 'q')).toEqual(['p null old', 'q null new']);
    });

    test('that needs columns as they were read is done only where they are', async () => {
      const { tables } = await withParcels(
        ...['p', 'q', 'r', 's'].map((id) => parcel(id, { place: 1, due_at: 5 })),
      );
      const writes = [
        put(PARCELS, parcel('p', { place: 2, letter: 'put' }), { as: { place: 1, due_at: 5, note: null } }),
        put(PARCELS, parcel('q', { place: 2 }), { as: { place: 0 } }),
        drop(PARCELS, 'r', { as: { place: 1 } }),
        drop(PARCELS, 's', { as: { note: 'x' } }),
        put(PARCELS, parcel('t'), { as: { place: 1 } }),
        drop(PARCELS, 'u', { as: { place: 1 } }),
      ];
      expect(await tables.write(writes)).toEqual([true, false, true, false, false, true]);
      expect(idsOf(await tables.find(PARCELS, { index: 'key', limit: 9 }))).toBe('p q s');
      expect(await letters(tables, 'p')).toEqual(['p null put']);
    });

    test('that needs a column to be lower inserts a missing row, replaces a lower one and leaves the others', async () => {
      const { tables } = await withEntries(
        entry(1, { revision: 3 }),
        entry(2, { revision: 4 }),
        entry(3, { revision: 5 }),
      );
      const to4 = [1, 2, 3, 4].map((id) =>
        put(ENTRIES, entry(id, { revision: 4, account: 9 }), { below: { revision: 4 } }),
      );
      expect(await tables.write(to4)).toEqual([true, false, false, true]);
      expect(
        (await tables.get(ENTRIES, [1, 2, 3, 4])).map(({ account, revision }) => [account, revision]),
      ).toEqual([
        [9, 4],
        [7, 4],
        [7, 5],
        [9, 4],
      ]);
      expect(await tables.write(to4)).toEqual([false, false, false, false]);
    });

    test('of several tables goes through them in the order of the list', async () => {
      const { tables } = await opened();
      const writes = [
        put(PARCELS, parcel('p')),
        put(ENTRIES, entry(1)),
        put(ENTRIES, entry(2), { as: { account: 1 } }),
        drop(PARCELS, 'q'),
        put(PARCELS, parcel('r')),
      ];
      expect(await tables.write(writes)).toEqual([true, true, false, true, true]);
      expect(await tables.write([])).toEqual([]);
      await expect(tables.write([put(PARCELS, parcel('p')), drop(PARCELS, 'p')])).rejects.toThrow(TypeError);
    });

    test.each([
      ['a row is there', put(ENTRIES, entry(1), 'missing')],
      ['a row is not as it was read', put(ENTRIES, entry(1), { as: { revision: 9 } })],
      ['a row is not lower', put(ENTRIES, entry(1), { below: { revision: 1 } })],
      ['a row to be changed is missing', change(ENTRIES, 5, { account: 1 })],
      ['a row to be removed is not as it was read', drop(ENTRIES, 1, { as: { revision: 9 } })],
    ])('of all or none does none where %s', async (_, failing) => {
      const { tables } = await withEntries(entry(1, { revision: 3 }), entry(2));
      const others = [put(PARCELS, parcel('p')), change(ENTRIES, 2, { account: 1 })];
      expect(await tables.write([...others, failing], { allOrNone: true })).toEqual([false, false, false]);
      expect(await tables.get(PARCELS, ['p'])).toEqual([]);
      expect(await tables.get(ENTRIES, [1, 2])).toEqual([entry(1, { revision: 3 }), entry(2)]);
      expect(await tables.write(others, { allOrNone: true })).toEqual([true, true]);
    });

    test('of several at once under one guard is done for one of them', async () => {
      const { tables, other } = await withEntries(entry(1));
      for (let revision = 0; revision < 4; revision++) {
        const writing = Array.from({ length: 6 }, (_, n) => {
          const writes = [
            put(ENTRIES, entry(1, { revision: revision + 1, account: n }), { as: { revision } }),
            put(ENTRIES, entry(100 + revision, { account: n }), 'missing'),
            put(ENTRIES, entry(200 + revision, { account: n, revision: 5 }), { below: { revision: 5 } }),
            put(ENTRIES, entry(1_000 + n)),
          ];
          return (n % 2 === 0 ? tables : other).write(writes);
        });
        const done = await Promise.all(writing);
        const winners = [0, 1, 2].map((place) => done.flatMap((each, n) => (each[place] ? [n] : [])));
        expect(winners.map((each) => each.length)).toEqual([1, 1, 1]);
        expect(done.every((each) => each[3])).toBe(true);
        const rows = await other.get(ENTRIES, [1, 100 + revision, 200 + revision]);
        expect(rows.map(({ account }) => account)).toEqual(winners.flat());
      }
    });

    test('of all or none is done for one of several at once, and of the rest nothing', async () => {
      const { tables, other } = await withEntries(entry(1));
      const writing = Array.from({ length: 6 }, (_, n) =>
        (n % 2 === 0 ? tables : other).write(
          [
            put(ENTRIES, entry(10 + n)),
            put(ENTRIES, entry(1, { revision: 1, account: n }), { as: { revision: 0 } }),
          ],
          { allOrNone: true },
        ),
      );
      const winners = (await Promise.all(writing)).flatMap(([isDone], n) => (isDone ? [n] : []));
      expect(winners).toHaveLength(1);
      const [winner = 0] = winners;
      expect(idsOf(await tables.find(ENTRIES, { index: 'key', limit: 99 }))).toBe(`1 ${10 + winner}`);
    });

    test('notifies who listens on another handle', async () => {
      const { tables, other } = await opened();
      const heard = new Promise<void>((notify) => other.changed.add({ notify }));
      await tables.write([put(ENTRIES, entry(1))]);
      await heard;
    });
  });

  test('each read is by the index that it names, and reads only what it was asked for', async ({ skip }) => {
    const { tables, plansOf } = await opened();
    if (plansOf === undefined) return skip();
    for (let from = 0; from < 4_000; from += 500) {
      const ids = Array.from({ length: 500 }, (_, n) => from + n);
      await tables.write(
        ids
          .map((id) => entry(id, { account: id % 40, status: id % 2, made_at: Math.floor(id / 400) }))
          .map((row) => put(ENTRIES, row)),
      );
      await tables.write(
        ids.map((id) =>
          put(
            PARCELS,
            parcel(`p${id}`, {
              lane: `l${id % 40}`,
              place: Math.floor(id / 400),
              due_at: id % 3 === 0 ? id : null,
            }),
          ),
        ),
      );
    }
    const ofRun = { index: 'by_account', equals: { account: 3, status: 1 } } as const;
    const ofRuns = { index: 'by_account', equals: { account: [3, 4, 5], status: [0, 1] } } as const;
    const ofLane = { index: 'by_lane', equals: { lane: 'l3' } } as const;
    const dueInLane = { index: 'due_in_lane', equals: { lane: 'l3' } } as const;
    const byTime = { index: 'by_time', after: { made_at: 3, id: 1_380 } } as const;
    const lanes = { index: 'due_in_lane', of: 'lane' } as const;
    type Entries = Omit<Query<typeof ENTRIES, 'id'>, 'limit'>;
    type Parcels = Omit<Query<typeof PARCELS, 'id' | 'letter'>, 'limit'>;
    const entries = (query: Entries) => () => tables.find(ENTRIES, { ...query, limit: 10 });
    const parcels = (query: Parcels) => () => tables.find(PARCELS, { ...query, limit: 10 });
    const place = { made_at: 4, id: 1_700 };
    const cases: readonly (readonly [index: string, most: number, work: () => Promise<unknown>])[] = [
      ['key', 2, () => tables.get(ENTRIES, [5])],
      ['key', 12, () => tables.get(PARCELS, ['p1', 'p2', 'p3'], ['id', 'letter'])],
      ['key', 22, entries({ index: 'key', after: { id: 700 } })],
      ['key', 22, parcels({ index: 'key', after: { id: 'p7' }, descending: true })],
      ['by_account', 22, entries(ofRun)],
      ['by_account', 22, entries({ ...ofRun, range: { from: 2, to: 4 }, descending: true })],
      ['by_account', 30, entries({ ...ofRun, after: place })],
      ['by_account', 90, entries({ ...ofRuns, descending: true, after: place })],
      ['by_lane', 32, parcels({ ...ofLane, after: { place: 4, id: 'p5' } })],
      ['by_time', 22, entries(byTime)],
      ['by_time', 22, entries({ ...byTime, descending: true, range: { from: 1, to: 5 } })],
      ['by_lane', 22, parcels({ ...ofLane, columns: ['id', 'letter'] })],
      ['due', 22, parcels({ index: 'due', range: { to: 900 } })],
      ['due_in_lane', 22, parcels(dueInLane)],
      ['due_in_lane', 90, () => tables.firsts(PARCELS, lanes)],
      ['due_in_lane', 8, () => tables.firsts(PARCELS, { ...lanes, values: ['l1', 'l2'], descending: true })],
      ['by_account', 22, () => tables.count(ENTRIES, ofRun, 20)],
      ['due', 32, () => tables.count(PARCELS, { index: 'due' }, 30)],
    ];
    for (const [n, [index, most, work]] of cases.entries()) {
      const plans = await plansOf(work);
      const which = `read ${n}, by ${index}`;
      for (const plan of plans) {
        expect(plan, which).toMatchObject({ isMore: false });
        expect([index, 'key'], which).toContain(plan.index);
        expect(plan.read ?? 0, which).toBeLessThanOrEqual(most);
      }
      const indexes = plans.map((plan) => plan.index);
      expect(indexes, which).toContain(index);
    }
  });

  test('a destroyed store is gone with all that was in it', async () => {
    const { tables, second } = await open();
    await tables.write([put(ENTRIES, entry(1))]);
    await tables.destroy();
    await expect(tables.get(ENTRIES, [1])).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    const next = second();
    onTestFinished(() => next.close());
    expect(await next.get(ENTRIES, [1])).toEqual([]);
    expect(await next.write([put(ENTRIES, entry(1), 'missing')])).toEqual([true]);
  });

  test('nothing is found by indexes that are still to be made, and everything once they are', async () => {
    const { tables, other } = await opened();
    const rows = [1, 2, 3].map((id) => ({ id, account: id % 2 }));
    await tables.write(rows.map((row) => put(LATER, row)));
    const odd = { index: 'by_account', equals: { account: 1 }, limit: 9 } as const;
    expect(idsOf(await tables.find(LATER, { index: 'key', limit: 9 }))).toBe('1 2 3');
    await expect(tables.find(LATER, odd)).rejects.toThrow(/index|hint/);
    await other.makeIndexes(LATER);
    await tables.makeIndexes(LATER);
    expect(idsOf(await tables.find(LATER, odd))).toBe('1 3');
  });

  test('after its end every call rejects', async () => {
    const { tables, other } = await opened();
    await tables.now();
    await tables.close();
    await tables.close();
    const calls: Readonly<Record<Exclude<keyof Tables, 'changed' | 'close'>, () => Promise<unknown>>> = {
      get: () => tables.get(ENTRIES, [1]),
      find: () => tables.find(ENTRIES, { index: 'key', limit: 1 }),
      firsts: () => tables.firsts(ENTRIES, { index: 'by_account', of: 'account' }),
      count: () => tables.count(ENTRIES, { index: 'key' }, 1),
      write: () => tables.write([put(ENTRIES, entry(1))]),
      makeIndexes: () => tables.makeIndexes(LATER),
      now: () => tables.now(),
      destroy: () => tables.destroy(),
    };
    for (const call of Object.values(calls))
      await expect(call()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    expect(() => tables.changed.add({ notify: () => undefined })).toThrow(
      expect.objectContaining({ code: 'STORE_CLOSED' }),
    );
    expect(await other.get(ENTRIES, [1])).toEqual([]);
  });
}
