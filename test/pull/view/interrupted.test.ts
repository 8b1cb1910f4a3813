import { expect, test } from 'vitest';
import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import type { Checkpoint } from '../../../src/pull/view/checkpoint.ts';
import { generationStore, generationTables, VIEWS, VIEWS_STORE } from '../../../src/pull/view/stores.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { openTransactionsView } from '../../../src/pull/view/view.ts';
import { erasureOf, type ViewChange } from '../../../src/records/project-event.ts';
import type { StorePlan } from '../../../src/tables/plan.ts';
import { drop, type OpenTables, put } from '../../../src/tables/tables.ts';
import { type EmptyStores, onEachTables } from '../../support/engines/each-tables.ts';
import { interposed, Steps } from '../../support/interposed.ts';
import { stoppedTime } from '../../support/steady-time.ts';
import { alterServed } from '../../support/transactions/open-view.ts';
import { WHOLE } from '../../support/transactions/opened-view.ts';
import { hiding, sampleRecord, showing } from '../../support/transactions/records.ts';
import { removeLeft } from '../../support/transactions/remove-left.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

const WRITES = ['write', 'makeIndexes', 'destroy'] as const;
const clock = { now: () => 1_000 };
const odd = { position: 9, stream: 'transaction-9', type: 'Odd', revision: 0, parkReason: 'odd' };

/** Returns the stores with a hook before each write. `before` gets the store and the call. */
function beforeWrites({ open }: EmptyStores, before: (write: string) => void | Promise<void>): OpenTables {
  return (plan) => interposed(open(plan), WRITES, (call) => before(`${plan.name} ${call}`));
}

function planOf(generation: number, rendering = RENDERING_VERSION): StorePlan {
  return generationStore(generation, generationTables(generation, rendering));
}

onEachTables((empty) => {
  const idsIn = async (view: TransactionsView) => (await view.page(WHOLE)).rows.map(({ id }) => id);

  /** Makes an incomplete served view with two rows, a tombstone and a parked event, and a build of a new one. */
  async function filled() {
    const stores = empty();
    const view = openTransactionsView(stores.open, clock);
    const { generation } = await view.reset('store-1', 99);
    const rows = [showing({ id: 1 }), showing({ id: 2 }), showing({ id: 3 }), hiding(3)];
    await view.apply([...rows, odd], { generation, position: 10 });
    const built = await view.startBuild({ storeId: 'store-1', servesFrom: 99 });
    const content = async (advance: (ms: number) => void) => {
      await removeLeft(openTransactionsView(stores.open, clock), advance);
      const { generation: _, since: __, ...checkpoint } = (await view.checkpoint()) ?? ({} as Checkpoint);
      const [views] = await stores.open(VIEWS_STORE).get(VIEWS, ['transactions']);
      return {
        rows: await Promise.all([1, 2, 3, 4, 9].map((id) => rowIn(view, id))),
        parked: await view.parked(),
        checkpoint,
        build: (await view.checkpoint('built'))?.storeId,
        leaving: views?.leaving,
      };
    };
    return { stores, view, generation, built: built.generation, content };
  }

  const other = showing({ id: 1, accountId: 8 });
  type Call = (view: TransactionsView, generation: number) => Promise<unknown>;
  const calls: Readonly<Record<string, Call>> = {
    erasure: (view) => view.replace(9, [erasureOf(9)]),
    'erasure of what is shown': (view) => view.replace(1, [erasureOf(1)]),
    replace: (view) => view.replace(1, [other]),
    'replace of what is parked': (view) => view.replace(9, [showing({ id: 9 })]),
    apply: (view, generation) =>
      view.apply([hiding(1), showing({ id: 4 }), { ...odd, position: 12 }], { generation, position: 13 }),
    'apply of what completes it': (view, generation) =>
      view.apply([showing({ id: 4 })], { generation, position: 99 }),
    reset: (view) => view.reset('store-2', 7),
    'reset of what is complete at once': (view) => view.reset('store-2', 0),
    'switch to a build': async (view) => {
      const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 99 });
      await view.apply([other], { generation, position: 99 });
      expect(await view.serveBuild(generation)).toBe(true);
    },
    'start of a build from another store': (view) => view.startBuild({ storeId: 'store-2', servesFrom: 99 }),
  };

  test.each(Object.entries(calls))(
    'the view: before any write of %s it ends, and the same call completes it',
    async (_, call) => {
      const advance = stoppedTime();
      const whole = await filled();
      const all = new Steps();
      await call(openTransactionsView(beforeWrites(whole.stores, all.before), clock), whole.generation);
      const expected = await whole.content(advance);
      expect(expected.leaving).toBe('[]');
      for (let most = 0; most < all.done.length; most++) {
        const { stores, generation, content } = await filled();
        const steps = new Steps(most);
        const ending = openTransactionsView(beforeWrites(stores, steps.before), clock);
        await expect(call(ending, generation)).rejects.toThrow('ended before');
        await call(openTransactionsView(stores.open, clock), generation);
        expect([most, await content(advance)]).toEqual([most, expected]);
      }
    },
  );

  test('the view: whenever a build is served during an erasure, the row is gone at its end, and no page shows it after one that lacked it', async () => {
    const erasing = async (
      before: (write: string, view: TransactionsView, build: number) => Promise<void>,
    ) => {
      const { stores, view, built: build, generation } = await filled();
      await view.apply([], { generation, position: 99 });
      await view.apply([showing({ id: 1 })], { generation: build, position: 99 });
      const ended = openTransactionsView(
        beforeWrites(stores, (write) => before(write, view, build)),
        clock,
      );
      await ended.replace(1, [erasureOf(1)]);
      expect(await rowIn(view, 1)).toBe('hidden');
      expect(await rowIn(openTransactionsView(stores.open, clock), 1)).toBe('hidden');
    };
    const all: string[] = [];
    await erasing(async (write) => void all.push(write));
    for (let at = 0; at < all.length; at++) {
      let count = 0;
      let isGone = false;
      const look = async (view: TransactionsView) => {
        const isShown = (await idsIn(view)).includes(1);
        expect([at, isGone && isShown]).toEqual([at, false]);
        isGone = !isShown;
      };
      await erasing(async (_, view, build) => {
        await look(view);
        if (count++ === at) await view.serveBuild(build);
        await look(view);
      });
    }
  });

  test.each<[string, ViewChange[], { readonly change: ViewChange; readonly meanwhile: ViewChange }]>([
    ['was not there', [], { change: hiding(1), meanwhile: showing({ id: 1 }) }],
    ['was there', [showing({ id: 1 })], { change: hiding(1, { revision: 2 }), meanwhile: hiding(1) }],
  ])(
    'the view: a row that %s is as its later event has it where another writes it meanwhile',
    async (_, before, at) => {
      const stores = empty();
      const view = openTransactionsView(stores.open, clock);
      const { generation } = await view.reset('store-1', 0);
      await view.apply(before, { generation, position: 1 });
      let isFirst = true;
      const open = beforeWrites(stores, async (write) => {
        if (!write.startsWith('transactions-') || !isFirst) return;
        isFirst = false;
        await view.apply([at.meanwhile], { generation, position: 2 });
      });
      expect(await openTransactionsView(open, clock).apply([at.change], { generation, position: 3 })).toEqual(
        [],
      );
      expect(await rowIn(view, 1)).toBe('hidden');
    },
  );

  test('the view: of an older rendering it is served, and says so; such a build is not continued', async () => {
    const stores = empty();
    const view = openTransactionsView(stores.open, clock);
    const { rendering } = await view.reset('store-1', 0);
    await alterServed(stores.open, (made) => ({ ...made, rendering: rendering - 1 }));
    expect(await view.checkpoint()).toMatchObject({ rendering: rendering - 1 });
    expect(await idsIn(view)).toEqual([]);
    const older = await view.startBuild({ storeId: 'store-1', servesFrom: 0 });
    const views = stores.open(VIEWS_STORE);
    const [row] = await views.get(VIEWS, ['transactions']);
    const built = JSON.stringify({ ...JSON.parse(row?.built ?? ''), rendering: rendering - 1 });
    if (row !== undefined) await views.write([put(VIEWS, { ...row, built })]);
    expect((await view.startBuild({ storeId: 'store-1', servesFrom: 0 })).generation).toBeGreaterThan(
      older.generation,
    );
    expect(await view.apply([], { generation: older.generation, position: 99 })).toBe('reset');
  });

  test('the view: one from before a reference is written and served without it, until a new one is', async () => {
    const stores = empty();
    const rendering = 0; // it has no reference at all
    const older = stores.open(planOf(1, rendering));
    const { rows, progress } = generationTables(1, rendering);
    await older.makeIndexes(rows);
    const since = { since_at: 0, since_position: 0, since_events: 0 };
    await older.write([put(progress, { name: 'transactions', position: 1, anchor: null, ...since })]);
    const served = JSON.stringify({ generation: 1, storeId: 'store-1', servesFrom: 0, rendering });
    const use = { name: 'transactions', last: 1, served, built: null, leaving: '[]' };
    await stores.open(VIEWS_STORE).write([put(VIEWS, use, 'missing')]);

    const view = openTransactionsView(stores.open, clock);
    await view.apply([showing({ id: 1 }), showing({ id: 2 }), hiding(2)], { generation: 1, position: 4 });
    expect(await idsIn(view)).toEqual([1]);
    expect(await rowIn(view, 2)).toBe('hidden');
    const ofCorporate = { ...WHOLE, references: { corporate_id: [31] } };
    await expect(view.page(ofCorporate)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 4 });
    await view.apply([showing({ id: 1 }), hiding(2)], { generation, position: 4 });
    expect(await view.serveBuild(generation)).toBe(true);
    expect((await view.page(ofCorporate)).rows.map(({ id }) => id)).toEqual([1]);
  });

  test('the view: rows that stay behind where nothing names them never get into a new one', async () => {
    const stores = empty();
    const view = openTransactionsView(stores.open, clock);
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
    await stores.open(VIEWS_STORE).write([drop(VIEWS, 'transactions')]);
    expect((await view.reset('store-1', 0)).generation).toBeGreaterThan(generation);
    expect([await idsIn(view), await rowIn(view, 1)]).toEqual([[], undefined]);
    await removeLeft(view, stoppedTime());
    const { rows } = generationTables(generation, RENDERING_VERSION);
    expect(await stores.open(planOf(generation)).find(rows, { index: 'key', limit: 9 })).toEqual([]);
  });

  test('the view: what a late projector writes to a generation that was removed is removed once more', async () => {
    const advance = stoppedTime();
    const stores = empty();
    const view = openTransactionsView(stores.open, clock);
    const { generation } = await view.reset('store-1', 0);
    let isFirst = true;
    const open = beforeWrites(stores, async (write) => {
      if (!write.startsWith('transactions-') || !isFirst) return;
      isFirst = false;
      await view.reset('store-1', 0);
      await removeLeft(view, advance);
    });
    const late = openTransactionsView(open, clock);
    const batch = [showing({ id: 2 })];
    expect(await late.apply(batch, { generation, position: 2 }).catch(() => 'reset')).toBe('reset');
    expect(await rowIn(view, 2)).toBeUndefined();
    expect(await view.leaving()).toEqual([generation]);
    await removeLeft(view, advance);
    expect(await view.leaving()).toEqual([]);
    const { rows } = generationTables(generation, RENDERING_VERSION);
    expect(await stores.open(planOf(generation)).find(rows, { index: 'key', limit: 9 })).toEqual([]);
  });

  test('the view: progress that another process has moved meanwhile never moves back', async () => {
    const stores = empty();
    const [view, other] = [
      openTransactionsView(stores.open, clock),
      openTransactionsView(stores.open, clock),
    ];
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 })], { generation, position: 1 });
    await other.apply([showing({ id: 2 }), showing({ id: 3 })], { generation, position: 9 });
    await view.apply([showing({ id: 2 })], { generation, position: 2 });
    expect(await view.checkpoint()).toMatchObject({ position: 9, since: { events: 4 } });
  });

  test('the view: a row has only the columns of its record, and a tombstone only account and revision', async () => {
    const stores = empty();
    const view = openTransactionsView(stores.open, clock);
    const { generation } = await view.reset('store-1', 0);
    const changes = [showing({ id: 1 }), showing({ id: 2 }), hiding(2), showing({ id: 3 })];
    await view.apply(changes, { generation, position: 1 });
    await view.replace(3, [erasureOf(3)]);
    const { rows } = generationTables(generation, RENDERING_VERSION);
    const nothing = {
      status: null,
      created_at: null,
      corporate_group_id: null,
      corporate_id: null,
      record: null,
    };
    const shown = {
      status: 'CONFIRMED',
      created_at: 1_000,
      corporate_group_id: null,
      corporate_id: 31,
      record: sampleRecord({ id: 1 }),
    };
    expect(await stores.open(planOf(generation)).find(rows, { index: 'key', limit: 9 })).toEqual([
      { id: 1, account_id: 7, revision: 0, ...shown },
      { id: 2, account_id: 7, revision: 1, ...nothing },
      { id: 3, account_id: 7, revision: Number.MAX_SAFE_INTEGER, ...nothing },
    ]);
  });
});
