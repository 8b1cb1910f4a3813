import { expect, test } from 'vitest';
import type { TransactionRow } from '../../../../projections/transactions.ts';
import { ViewComparison } from '../../../../src/transactions/view/build/compare.ts';
import { openPushStores } from '../../../support/deliveries/push-stores.ts';
import { storeWith } from '../../../support/event-store/store-with.ts';
import { confirmed } from '../../../support/transactions/e2e-samples.ts';
import { sampleRow } from '../../../support/transactions/records.ts';

/** The rows of a view that is as far as `position`. */
function rows(position: number, ...held: readonly TransactionRow[]) {
  const view = {
    position,
    held: new Map(held.map((row) => [row.id, row])),
    find: async (id: number) => view.held.get(id),
    rowsAfter: async (id: number, limit: number) =>
      [...view.held.values()].filter((row) => row.id > id).slice(0, limit),
    checkpoint: async () => ({ position: view.position }) as never,
  };
  return view;
}

async function comparing(served: ReturnType<typeof rows>, build: ReturnType<typeof rows>, on?: object) {
  const { store, append } = openPushStores();
  for (const id of [1, 2]) await append(`transaction-${id}`, confirmed(id)); // at positions 1 and 2
  const options = { store: on === undefined ? store : storeWith(store, on), served, build: build as never };
  const comparison = new ViewComparison(options);
  await comparison.findSuspects();
  return { comparison, store };
}

test.each([
  ['served', 1, 2],
  ['new', 2, 1],
])('a record whose last event the %s view has not applied is judged once it has', async (_, one, other) => {
  const served = rows(one, sampleRow({ id: 1 }));
  const build = rows(other, sampleRow({ id: 1 }), sampleRow({ id: 2 }));
  const { comparison } = await comparing(served, build);
  expect(await comparison.judgeSuspects()).toBe(false);
  expect(comparison.differing).toBe(0);
  [served.position, build.position] = [2, 2];
  served.held.set(2, sampleRow({ id: 2 }));
  expect(await comparison.judgeSuspects()).toBe(true);
  expect([comparison.differing, comparison.records]).toEqual([0, 2]);
});

test('a record that differs where both are as far is named once', async () => {
  const { comparison } = await comparing(
    rows(2, sampleRow({ id: 1 })),
    rows(2, sampleRow({ id: 1 }), sampleRow({ id: 2 })),
  );
  expect(await comparison.judgeSuspects()).toBe(true);
  expect(await comparison.judgeSuspects()).toBe(true);
  expect([comparison.differing, comparison.named]).toEqual([
    1,
    [{ transactionId: 2, accountId: 7, kind: 'added' }],
  ]);
});

test('a record that changes while it is looked at is judged later', async () => {
  let reads = 0;
  const { comparison } = await comparing(rows(2), rows(2, sampleRow({ id: 2 })), {
    readStream: async () => [{ position: ++reads }],
  });
  expect(await comparison.judgeSuspects()).toBe(false);
  expect(comparison.differing).toBe(0);
});

test('the views’ positions are read before their rows, which may be further by then', async () => {
  const served = rows(1, sampleRow({ id: 1 }));
  const build = rows(2, sampleRow({ id: 1 }), sampleRow({ id: 2 }));
  const { comparison } = await comparing(served, build);
  const find = build.find;
  build.find = async (id) => {
    served.position = 2; // the projector goes on
    return find(id);
  };
  expect([await comparison.judgeSuspects(), comparison.differing]).toEqual([false, 0]);
});
