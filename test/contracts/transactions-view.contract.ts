import { describe, expect, test } from 'vitest';
import { redactedRecord } from '../../projections/record.ts';
import type { PageQuery, TransactionsView } from '../../src/pull/view/transactions-view.ts';
import { erasureOf } from '../../src/records/project-event.ts';
import { openedView, WHOLE } from '../support/transactions/opened-view.ts';
import { hiding, sampleRecord, sampleRow, showing } from '../support/transactions/records.ts';
import { rowIn } from '../support/transactions/row-in.ts';
import { transactionsViewBulkContract } from './transactions-view-bulk.contract.ts';
import { transactionsViewPagingContract } from './transactions-view-paging.contract.ts';

/** The contract of the transactions view. `open` returns a separate empty view. */
export function transactionsViewContract(open: () => Promise<TransactionsView>): void {
  const opened = () => openedView(open);
  const odd = (position: number, id: number) => {
    const place = { position, stream: `transaction-${id}`, type: 'Odd', revision: 0 };
    return { ...place, parkReason: `odd at ${position}` };
  };
  const ids = async (view: TransactionsView, query: Partial<PageQuery> = {}): Promise<number[]> =>
    (await view.page({ ...WHOLE, ...query })).rows.map((row) => row.id);

  describe('pages', () => {
    test('a page of hundreds of corporates is newest first over all of them, however they are looked for', async () => {
      const { view, apply } = await opened();
      const references = { corporate_id: Array.from({ length: 230 }, (_, n) => n) };
      // Three records in each millisecond, far apart among the corporates.
      const rows = Array.from({ length: 60 }, (_, n) =>
        showing({ id: n + 1, createdAtMs: Math.floor(n / 3), corporateId: (n * 77) % 230 }),
      );
      await apply(...rows);
      const newestFirst = rows.map((_, n) => 60 - n);
      expect(await ids(view, { references, limit: 50 })).toEqual(newestFirst.slice(0, 50));
      const after = { createdAtMs: 16, id: 50 };
      expect(await ids(view, { references, after, limit: 7 })).toEqual(newestFirst.slice(11, 18));
      const ofOne = Array.from({ length: 60 }, (_, n) =>
        showing({ id: 100 + n, accountId: 8, corporateId: 7 }),
      );
      await apply(...ofOne);
      const behind = { createdAtMs: 1_000, id: 150 };
      const whole = await ids(view, { accountId: 8, references, after: behind, limit: 40 });
      expect(whole).toEqual(Array.from({ length: 40 }, (_, n) => 149 - n));
    });

    test('a row is read as it was stored, in a page and alone, whatever of it is null', async () => {
      const { view, apply } = await opened();
      const text = {
        mobileNumber: '"+15550100"',
        pump: 'photos/1/pump.jpg',
        odometer: 'photos/1/odometer.jpg',
      };
      const given = [text, ...Object.entries(text).map(([name, value]) => ({ [name]: value }))].map(
        (some, n) => sampleRow({ id: n + 1, corporateGroupId: n === 0 ? 3 : null, ...some }),
      );
      await apply(...given.map((row) => showing(row)));
      const pageRows = given.map(({ accountId, status, references, ...row }) => row);
      expect((await view.page(WHOLE)).rows).toEqual(pageRows.toReversed());
      for (const row of given) expect(await rowIn(view, row.id)).toEqual(row);
    });

    test('the texts and object keys of a page are those that were stored, whatever characters they have', async () => {
      const { view, apply } = await opened();
      const given = ['a', 'é', 'ש', '💧', '\u2028', '"', '\\', '\n', '\u0001'].map((character, n) => {
        const text = JSON.stringify(`${character} 1 ${character}`);
        return sampleRow({
          id: n + 1,
          driverName: text,
          mobileNumber: n % 2 === 0 ? text : null,
          pump: character,
          odometer: `photos/${character}/${character}.jpg`,
        });
      });
      await apply(...given.map((row) => showing(row)));
      const pageRows = given.map(({ accountId, status, references, ...row }) => row);
      expect((await view.page(WHOLE)).rows).toEqual(pageRows.toReversed());
    });
  });

  transactionsViewPagingContract(open);
  transactionsViewBulkContract(open);

  describe('changes', () => {
    test('a void that comes before its transaction keeps it hidden', async () => {
      const { view, apply } = await opened();
      await apply(hiding(1));
      await apply(showing({ id: 1 }));
      expect(await ids(view)).toEqual([]);
    });

    test('the same event at a later revision changes nothing and is not parked', async () => {
      const { view, apply } = await opened();
      await apply(showing({ id: 1 }), showing({ id: 1 }, { revision: 1 }));
      await apply(hiding(1, { revision: 2 }), hiding(1, { revision: 3 }));
      expect(await ids(view)).toEqual([]);
      expect(await view.parked()).toEqual([]);
    });

    test('what is parked is listed by its position, in parts as large as asked for', async () => {
      const { view, apply } = await opened();
      await apply(...[3, 1, 2].map((id) => odd(70 + id, id)));
      const positions = async (page?: { readonly after?: number; readonly limit?: number }) =>
        (await view.parked(page)).map(({ position }) => position);
      expect(await positions()).toEqual([71, 72, 73]);
      expect(await positions({ limit: 2 })).toEqual([71, 72]);
      expect(await positions({ after: 71, limit: 1 })).toEqual([72]);
      expect(await positions({ after: 73 })).toEqual([]);
    });

    test('applying a batch returns what it parked, with the reason', async () => {
      const { view } = await opened();
      const { generation = 0 } = (await view.checkpoint()) ?? {};
      const changes = [odd(78, 3), odd(77, 1), showing({ id: 2 })];
      expect(await view.apply(changes, { generation, position: 99 })).toMatchObject([
        { position: 77, stream: 'transaction-1', revision: 0, reason: 'odd at 77' },
        { position: 78, stream: 'transaction-3', revision: 0, reason: 'odd at 78' },
      ]);
      expect(await ids(view)).toEqual([2]);
    });

    test('the checkpoint never moves back', async () => {
      const { view } = await opened();
      const { generation = 0 } = (await view.checkpoint()) ?? {};
      await view.apply([], { generation, position: 9 });
      await view.apply([showing({ id: 1 })], { generation, position: 8 });
      expect((await view.checkpoint())?.position).toBe(9);
    });

    test('a parked event is kept with its position and reason until its transaction is replaced', async () => {
      const { view, apply } = await opened();
      const place = { position: 5, stream: 'transaction-1', type: 'Odd', revision: 0 };
      await apply({ ...place, parkReason: 'unknown type' });
      expect(await view.parked()).toMatchObject([{ ...place, reason: 'unknown type' }]);
      await view.replace(1, [{ ...place, parkReason: 'still unknown' }]);
      expect(await view.parked()).toMatchObject([{ reason: 'still unknown' }]);
      await view.replace(1, [showing({ id: 1 }, { position: 5 })]);
      expect(await view.parked()).toEqual([]);
      expect(await ids(view)).toEqual([1]);
    });

    test('parked events are counted as they are listed: once, until they fit, and from zero after a reset', async () => {
      const { view, apply } = await opened();
      expect(await view.countParked()).toBe(0);
      const at = (position: number) => odd(position, position);
      await apply(at(1), at(2), showing({ id: 9 }));
      await apply(at(2), at(3));
      expect(await view.countParked()).toBe(3);
      await view.replace(2, [showing({ id: 2 }, { position: 2 })]);
      expect(await view.countParked()).toBe(2);
      await view.reset('store-1', 0);
      expect(await view.countParked()).toBe(0);
    });

    test('the parked events of a transaction, and of no other, are removed when it is erased or replaced', async () => {
      const { view, apply } = await opened();
      await apply(odd(5, 1), odd(6, 2), odd(7, 3), odd(8, 3));
      const positions = async () => (await view.parked()).map(({ position }) => position);
      await view.replace(1, [erasureOf(1)]);
      expect(await positions()).toEqual([6, 7, 8]);
      await view.replace(3, [showing({ id: 3 }), odd(8, 3), odd(9, 3)]);
      expect(await positions()).toEqual([6, 8, 9]);
      await view.replace(3, []);
      expect(await positions()).toEqual([6]);
    });

    test('an erased transaction is gone and never comes back', async () => {
      const { view, apply } = await opened();
      await apply(showing({ id: 1 }));
      await view.replace(1, [erasureOf(1)]);
      await apply(showing({ id: 1 }, { revision: 4 }));
      expect(await rowIn(view, 1)).toBe('hidden');
      expect(await ids(view)).toEqual([]);
    });

    test('a later record replaces the row, and an earlier one does not', async () => {
      const { view, apply } = await opened();
      const driver = { mobileNumber: '"+15550100"' };
      const redacted = sampleRow({ id: 1, record: redactedRecord(sampleRecord({ id: 1, ...driver })) });
      await apply(showing({ id: 1, ...driver }));
      await apply(showing(redacted, { revision: 4, position: 90 }));
      await apply(showing({ id: 1, ...driver }), showing({ id: 1, ...driver }, { revision: 3 }));
      expect(await rowIn(view, 1)).toEqual(redacted);
    });

    test('a replacement replaces the row, whatever it was, and an empty one removes it', async () => {
      const { view, apply } = await opened();
      await apply(showing({ id: 1, fees: '{"wrong":1}' }, { revision: 9 }), showing({ id: 2 }));
      await view.replace(1, [showing({ id: 1 })]);
      expect(await rowIn(view, 1)).toEqual(sampleRow({ id: 1 }));
      await view.replace(1, [showing({ id: 1 }), hiding(1)]);
      expect(await rowIn(view, 1)).toBe('hidden');
      await view.replace(2, []);
      expect(await rowIn(view, 2)).toBeUndefined();
    });
  });

  describe('checkpoint', () => {
    test('a new view has no checkpoint and serves no page', async () => {
      const view = await open();
      expect(await view.checkpoint()).toBeUndefined();
      expect([await view.parked(), await view.countParked()]).toEqual([[], 0]);
      await expect(view.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    });

    test('a view serves no page before it has reached the end that the log had at its reset', async () => {
      const view = await open();
      const { generation } = await view.reset('store-1', 10);
      await view.apply([showing({ id: 1 })], { generation, position: 9 });
      await expect(view.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await view.apply([], { generation, position: 10 });
      expect(await ids(view)).toEqual([1]);
    });

    test('the checkpoint moves with the rows it covers', async () => {
      const { view, apply } = await opened();
      await apply(showing({ id: 1 }));
      expect(await view.checkpoint()).toMatchObject({ storeId: 'store-1', position: 1 });
    });

    test('a batch for a view that was reset since is refused as a whole', async () => {
      const { view } = await opened();
      const before = await view.checkpoint();
      await view.reset('store-1', 0);
      const stale = { generation: before?.generation ?? 0, position: 3 };
      expect(await view.apply([showing({ id: 1 })], stale)).toBe('reset');
      expect(await view.apply([], { ...stale, position: 0 })).toBe('reset');
      expect(await ids(view)).toEqual([]);
      expect((await view.checkpoint())?.position).toBe(0);
    });

    test('a reset removes rows, tombstones and parked events', async () => {
      const { view, apply } = await opened();
      await apply(showing({ id: 1 }), hiding(1), {
        position: 5,
        stream: 'transaction-2',
        type: 'Odd',
        revision: 0,
        parkReason: 'odd',
      });
      await view.reset('store-1', 0);
      expect(await rowIn(view, 1)).toBeUndefined();
      expect(await view.parked()).toEqual([]);
    });
  });
}
