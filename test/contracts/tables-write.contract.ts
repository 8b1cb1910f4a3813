import { describe, expect, test } from 'vitest';
import { change, drop, put, type Tables } from '../../src/tables/tables.ts';
import {
  all,
  ENTRIES,
  entry,
  idsOf,
  type OpenTables,
  PARCELS,
  parcel,
  tablesOf,
} from '../support/engines/tables-under-test.ts';

/** The part of the contract of tables that changes rows. */
export function tablesWriteContract(open: OpenTables): void {
  const { opened, withParcels, withEntries } = tablesOf(open);

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
}
