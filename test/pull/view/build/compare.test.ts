import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TransactionRow } from '../../../../projections/transactions.ts';
import { compareViews } from '../../../../src/pull/view/build/compare.ts';
import type { ViewReads } from '../../../../src/pull/view/transactions-view.ts';
import { openPushStores } from '../../../support/deliveries/push-stores.ts';
import { replacing } from '../../../support/interposed.ts';
import { confirmed } from '../../../support/transactions/e2e-samples.ts';
import { sampleRow } from '../../../support/transactions/records.ts';

const BUILT = 2;

const row = (id: number): TransactionRow => ({ ...SAMPLE, id });
const SAMPLE = sampleRow({ id: 0 });

const without = (all: readonly number[], some: readonly number[]): number[] => {
  const left = new Set(some);
  return all.filter((id) => !left.has(id));
};

function rows(...held: readonly TransactionRow[]) {
  const view = {
    held: new Map(held.map((row) => [row.id, row])),
    find: async (ids: readonly number[]) =>
      new Map(
        ids.flatMap((id) => {
          const shown = view.held.get(id);
          return shown ? [[id, { revision: 0, accountId: shown.accountId, shown }] as const] : [];
        }),
      ),
    rowsAfter: async (id: number, limit: number) =>
      [...view.held.values()].filter((row) => row.id > id).slice(0, limit),
  };
  return view;
}

async function comparing(served: ReturnType<typeof rows>, built: ReturnType<typeof rows>, on?: object) {
  const { store, append } = openPushStores();
  for (const id of [1, 2]) await append(`transaction-${id}`, confirmed(id)); // these are at positions 1 and 2
  const of = (generation?: number) => (generation === BUILT ? built : served);
  const view: Pick<ViewReads, 'find' | 'rowsAfter'> = {
    find: (ids, generation) => of(generation).find(ids),
    rowsAfter: (afterId, limit, generation) => of(generation).rowsAfter(afterId, limit),
  };
  const comparison = await compareViews(on === undefined ? store : replacing(store, on), view, BUILT);
  return { comparison, store };
}

test('a record whose last event not both views have applied is judged once they have', async () => {
  const served = rows(sampleRow({ id: 1 }));
  const { comparison } = await comparing(served, rows(sampleRow({ id: 1 }), sampleRow({ id: 2 })));
  expect(await comparison.judgeSuspects(1)).toBe(false);
  expect(comparison.differing).toBe(0);
  served.held.set(2, sampleRow({ id: 2 }));
  expect(await comparison.judgeSuspects(2)).toBe(true);
  expect([comparison.differing, comparison.records]).toEqual([0, 2]);
});

test('records that differ where both are as far are named once, with how the served view differs', async () => {
  const served = rows(sampleRow({ id: 1 }), sampleRow({ id: 3 }), sampleRow({ id: 4 }));
  const built = rows(sampleRow({ id: 1, fees: 'other' }), sampleRow({ id: 2 }), sampleRow({ id: 4 }));
  const { comparison } = await comparing(served, built);
  expect(await comparison.judgeSuspects(2)).toBe(true);
  expect(await comparison.judgeSuspects(2)).toBe(true);
  const { differing, records, named } = comparison;
  expect({ differing, records, named }).toEqual({
    differing: 3,
    records: 3,
    named: [
      { transactionId: 1, accountId: 7, kind: 'differing' },
      { transactionId: 2, accountId: 7, kind: 'missing' },
      { transactionId: 3, accountId: 7, kind: 'surplus' },
    ],
  });
});

test('a record that was judged before the view became unavailable is counted once', async () => {
  const built = rows(sampleRow({ id: 1 }), sampleRow({ id: 2 }));
  const { comparison } = await comparing(rows(), built);
  const find = built.find;
  built.find = async (ids) => {
    if (ids.includes(2)) throw new Error('unavailable');
    return find(ids);
  };
  await expect(comparison.judgeSuspects(2)).rejects.toThrow('unavailable');
  built.find = find;
  expect(await comparison.judgeSuspects(2)).toBe(true);
  expect(comparison.differing).toBe(2);
});

test('a record that changes while it is looked at is judged later', async () => {
  let reads = 0;
  const { comparison } = await comparing(rows(), rows(sampleRow({ id: 2 })), {
    readStream: async () => [{ position: ++reads }],
  });
  expect(await comparison.judgeSuspects(2)).toBe(false);
  expect(comparison.differing).toBe(0);
});

test('both views are compared record by record, however their pages end', async () => {
  const ids = fc.uniqueArray(fc.integer({ min: 0, max: 1_300 }), { minLength: 1, maxLength: 1_300 });
  const { store } = openPushStores();
  await fc.assert(
    fc.asyncProperty(ids, ids, fc.integer({ min: 2, max: 900 }), async (gone, added, every) => {
      const shared = Array.from({ length: 1_200 }, (_, id) => id * every);
      const [built, served] = [without(shared, gone), [...new Set([...without(shared, added), ...added])]];
      const of = (held: readonly number[]) => rows(...held.toSorted((a, b) => a - b).map((id) => row(id)));
      const [builtRows, servedRows] = [of(built), of(served)];
      const view: Pick<ViewReads, 'find' | 'rowsAfter'> = {
        find: (some, generation) => (generation === BUILT ? builtRows : servedRows).find(some),
        rowsAfter: (after, limit, generation) =>
          (generation === BUILT ? builtRows : servedRows).rowsAfter(after, limit),
      };
      const comparison = await compareViews(store, view, BUILT);
      expect(await comparison.judgeSuspects(0)).toBe(true);
      expect([comparison.records, comparison.differing]).toEqual([
        built.length,
        new Set(built).symmetricDifference(new Set(served)).size,
      ]);
    }),
    { numRuns: 15 },
  );
});
