import { describe, expect, test } from 'vitest';
import { REMOVED_AFTER_MS } from '../../../src/pull/view/generations.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { openTransactionsView } from '../../../src/pull/view/view.ts';
import type { OpenTables } from '../../../src/tables/tables.ts';
import { onEachTables } from '../../support/engines/each-tables.ts';
import { interposed, replacing } from '../../support/interposed.ts';
import { stoppedTime } from '../../support/steady-time.ts';
import { WHOLE } from '../../support/transactions/opened-view.ts';
import { showing } from '../../support/transactions/records.ts';
import { removeLeft } from '../../support/transactions/remove-left.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

const clock = { now: () => 1_000 };

onEachTables((empty) => {
  const idsIn = async (view: TransactionsView) => (await view.page(WHOLE)).rows.map(({ id }) => id);

  describe('a page whose generation is removed between the look and the read', () => {
    async function paging(passedMs: (advance: (ms: number) => void) => void) {
      const advance = stoppedTime();
      const stores = empty();
      const view = openTransactionsView(stores.open, clock);
      const { generation } = await view.reset('store-1', 0);
      await view.apply([showing({ id: 1 })], { generation, position: 1 });
      const built = await view.startBuild({ storeId: 'store-1', servesFrom: 1 });
      await view.apply([showing({ id: 1 }), showing({ id: 2 })], { ...built, position: 1 });
      let isDue = false;
      const open: OpenTables = (plan) =>
        interposed(stores.open(plan), ['find'], async () => {
          if (plan.name !== `transactions-${generation}` || !isDue) return;
          isDue = false;
          expect(await view.serveBuild(built.generation)).toBe(true);
          await removeLeft(view, advance);
          passedMs(advance);
        });
      const reader = openTransactionsView(open, clock);
      expect(await idsIn(reader)).toEqual([1]);
      isDue = true;
      return { ids: () => idsIn(reader), view };
    }

    test('the view: is read again, from the one that is served by then', async () => {
      const { ids, view } = await paging(() => undefined);
      expect(await ids()).toEqual([2, 1]);
      await removeLeft(view, stoppedTime());
      expect(await view.leaving()).toEqual([]);
    });

    test('the view: is never an empty one, even if the machine was suspended and its steady time with it', async () => {
      const { ids } = await paging((advance) => advance(-REMOVED_AFTER_MS));
      expect(await ids()).toContain(1); // a file that was open is still read
    });
  });

  test('the view: a page is one call within a second of another, and a batch is three, of which two at a time', async () => {
    const advance = stoppedTime();
    const stores = empty();
    const calls: string[] = [];
    const open: OpenTables = (plan) => {
      const tables = stores.open(plan);
      const write: typeof tables.write = (writes, options) => {
        if (writes.length > 0) calls.push(`write ${plan.name}`);
        return tables.write(writes, options);
      };
      return interposed(
        replacing(tables, { write }),
        ['get', 'find', 'firsts', 'count'],
        (call) => void calls.push(`${call} ${plan.name}`),
      );
    };
    const view = openTransactionsView(open, clock);
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
    const own = `write transactions-${generation}`;
    calls.length = 0;
    expect(await view.apply([showing({ id: 2 })], { generation, position: 2 })).toEqual([]);
    expect(calls).toEqual([own, own, 'find transactions']);
    await idsIn(view);
    calls.length = 0;
    advance(999);
    expect(await idsIn(view)).toEqual([2, 1]);
    expect(calls).toEqual([`find transactions-${generation}`]);
    calls.length = 0;
    advance(1);
    expect([await idsIn(view), await idsIn(view)]).toEqual([
      [2, 1],
      [2, 1],
    ]);
    const page = `find transactions-${generation}`;
    expect(calls).toEqual(['find transactions', page, page]);
    await openTransactionsView(stores.open, clock).reset('store-1', 0);
    expect(await view.apply([showing({ id: 3 })], { generation, position: 3 })).toBe('reset');
    expect(await rowIn(view, 3)).toBeUndefined();
  });
});
