import { describe, expect, onTestFinished, test } from 'vitest';
import { removeRows } from '../../src/tables/remove-rows.ts';
import { change, drop, put, type Query, type Tables } from '../../src/tables/tables.ts';
import {
  ENTRIES,
  entry,
  idsOf,
  LATER,
  type OpenTables,
  PARCELS,
  parcel,
  tablesOf,
} from '../support/engines/tables-under-test.ts';
import { tablesFindContract } from './tables-find.contract.ts';
import { tablesWriteContract } from './tables-write.contract.ts';

/** The contract of every engine of tables. `open` returns an empty store, which the suite closes. */
export function tablesContract(open: OpenTables): void {
  const { opened, withParcels, withEntries } = tablesOf(open);

  tablesFindContract(open);
  tablesWriteContract(open);

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

  test('what the plan does not permit in a key, a guard, a selection or a limit is refused, and nothing is done', async () => {
    const { tables } = await withEntries(entry(1), entry(2));
    const as = <T>(value: unknown) => value as T;
    const by = { index: 'by_account', limit: 9 } as const;
    const calls: (() => Promise<unknown>)[] = [
      ...[undefined, null, { $ne: null }, '1', 1.5].flatMap((key) => [
        () => tables.get(ENTRIES, [as<number>(key)]),
        () => tables.write([drop(ENTRIES, as<number>(key))]),
        () => tables.write([change(ENTRIES, as<number>(key), { account: 9 })]),
        () => tables.find(ENTRIES, { ...by, equals: { account: as<number>(key) } }),
        () => tables.find(ENTRIES, { ...by, equals: { account: [1, as<number>(key)] } }),
        () => tables.find(ENTRIES, { index: 'key', after: { id: as<number>(key) }, limit: 9 }),
        () => tables.firsts(ENTRIES, { index: 'by_account', of: 'account', values: [as<number>(key)] }),
      ]),
      ...[undefined, { $gte: 0 }].map(
        (value) => () => tables.write([drop(ENTRIES, 1, { as: { revision: as<number>(value) } })]),
      ),
      () => tables.write([drop(ENTRIES, 1, { as: as<object>({ other: 1 }) })]),
      () => tables.write([change(ENTRIES, 1, { id: 2 })]),
      () => tables.write([put(ENTRIES, entry(1), { below: { revision: as<number>('9') } })]),
      ...['1', null, Number.NaN, { $ne: 1 }].map(
        (from) => () => tables.find(ENTRIES, { ...by, range: { from: as<number>(from) } }),
      ),
      () => tables.find(ENTRIES, { index: 'key', equals: { id: 1 }, range: { from: 1 }, limit: 9 }),
      ...[undefined, '9', 1.5, Number.NaN, Infinity, '1; DROP TABLE entries'].flatMap((limit) => [
        () => tables.find(ENTRIES, { index: 'key', limit: as<number>(limit) }),
        () => tables.count(ENTRIES, { index: 'key' }, as<number>(limit)),
      ]),
      () => tables.find(ENTRIES, { index: 'key', limit: 9, columns: [as<'id'>('other')] }),
      () => tables.get(ENTRIES, [1], [as<'id'>('constructor')]),
    ];
    for (const [n, call] of calls.entries()) {
      const refusal = await call().then(
        () => `call ${n} was done`,
        (error: unknown) =>
          error instanceof TypeError ? 'ITEM_REFUSED' : (error as { code?: unknown }).code,
      );
      expect(refusal).toBe('ITEM_REFUSED');
    }
    expect(await tables.get(ENTRIES, [1, 2])).toEqual([entry(1), entry(2)]);
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
