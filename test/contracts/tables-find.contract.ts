import { describe, expect, test } from 'vitest';
import { change, drop, put } from '../../src/tables/tables.ts';
import {
  ENTRIES,
  type Entry,
  entry,
  idsOf,
  type OpenTables,
  PARCELS,
  type Parcel,
  parcel,
  tablesOf,
} from '../support/engines/tables-under-test.ts';

/** The part of the contract of tables that reads them by an index. */
export function tablesFindContract(open: OpenTables): void {
  const { opened, withParcels, withEntries } = tablesOf(open);

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

    test.each([false, true])(
      'pages of more runs than an engine takes at once repeat and skip nothing, with ties (descending: %s)',
      async (descending) => {
        const entries = Array.from({ length: 300 }, (_, n) =>
          entry(n, { account: n % 3 === 0 ? 1 : n, status: 1 + (n % 2), made_at: Math.floor(n / 40) }),
        );
        const { tables } = await withEntries(...entries);
        const equals = { account: entries.map(({ id }) => id), status: [1, 2] };
        const query = { index: 'by_account', equals, descending, range: { from: 1, to: 6 } } as const;
        const found: number[] = [];
        for (let after: Pick<Entry, 'id' | 'made_at'> | undefined; ; ) {
          const page = await tables.find(ENTRIES, { ...query, after, limit: 45 });
          for (const { id } of page) found.push(id);
          after = page.at(-1);
          if (after === undefined) break;
        }
        const expected = Array.from({ length: 240 }, (_, n) => n + 40);
        expect(found).toEqual(descending ? expected.reverse() : expected);
      },
    );

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
}
