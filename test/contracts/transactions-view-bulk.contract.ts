import { describe, expect, test } from 'vitest';
import type { TransactionsView } from '../../src/pull/view/transactions-view.ts';
import { openedView } from '../support/transactions/opened-view.ts';
import { hiding, sampleRow, showing } from '../support/transactions/records.ts';

const LARGEST = Number.MAX_SAFE_INTEGER - 1;

/** The contract of the transactions view for many rows at once. */
export function transactionsViewBulkContract(open: () => Promise<TransactionsView>): void {
  const opened = () => openedView(open);

  describe('many rows at once', () => {
    test('are found by id as each alone, tombstones too, and what is not known is left out', async () => {
      const { view, apply } = await opened();
      const rows = [
        sampleRow({ id: 1, corporateGroupId: 3, mobileNumber: '"+15550100"', pump: 'p', odometer: 'o' }),
        sampleRow({ id: LARGEST, accountId: 8, status: 'EXTERNAL' }),
      ];
      await apply(...rows.map((row) => showing(row)), showing({ id: 5 }), hiding(5));
      const found = await view.find([LARGEST, 5, 404, 1]);
      expect(new Map<number, unknown>([...found].toSorted(([a], [b]) => a - b))).toEqual(
        new Map<number, unknown>([
          [1, { revision: 0, accountId: 7, shown: rows[0] }],
          [5, { revision: 1, accountId: 7, shown: null }],
          [LARGEST, { revision: 0, accountId: 8, shown: rows[1] }],
        ]),
      );
      expect((await view.find([])).size).toBe(0);
    });

    test('come in the order of their ids, of every account, without tombstones', async () => {
      const { view, apply } = await opened();
      await apply(
        ...[9, 2, 7, 10, 4].map((id) => showing({ id, accountId: id })),
        hiding(7, { accountId: 7 }),
      );
      expect((await view.rowsAfter(-1, 10)).map(({ id }) => id)).toEqual([2, 4, 9, 10]);
      expect(await view.rowsAfter(4, 1)).toEqual([sampleRow({ id: 9, accountId: 9 })]);
      expect(await view.rowsAfter(10, 5)).toEqual([]);
      expect(await view.idsAfter(-1, 10)).toEqual([2, 4, 9, 10]);
      expect(await view.idsAfter(2, 2)).toEqual([4, 9]);
      expect(await view.idsAfter(10, 5)).toEqual([]);
    });

    test('are read of a view that is not complete yet, and a view without a checkpoint has none', async () => {
      const view = await open();
      expect([await view.rowsAfter(-1, 9), await view.idsAfter(-1, 9)]).toEqual([[], []]);
      expect((await view.find([1])).size).toBe(0);
      const { generation } = await view.reset('store-1', 100);
      await view.apply([showing({ id: 1 })], { generation, position: 1 });
      expect((await view.rowsAfter(-1, 9)).map(({ id }) => id)).toEqual([1]);
      expect(await view.idsAfter(-1, 9)).toEqual([1]);
      expect((await view.find([1])).size).toBe(1);
    });
  });
}
