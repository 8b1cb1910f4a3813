import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { TransactionsView } from '../../src/pull/view/transactions-view.ts';
import { erasureOf } from '../../src/records/project-event.ts';
import { stoppedTime } from '../support/steady-time.ts';
import { WHOLE } from '../support/transactions/opened-view.ts';
import { hiding, sampleRow, showing } from '../support/transactions/records.ts';
import { rowIn } from '../support/transactions/row-in.ts';
import { until } from '../support/waiting.ts';

const SWITCHES = 4;
const SWITCH_SEEN_MS = 30_000;
const SEEN_WITHIN_MS = 1_000;

/** The contract of a view built next to the served one. `open` returns two openings of one empty view. */
export function viewBuildContract(open: () => Promise<readonly [TransactionsView, TransactionsView]>): void {
  const ids = async (view: TransactionsView): Promise<number[]> =>
    (await view.page(WHOLE)).rows.map((row) => row.id);

  /** Makes a served view at position 4 that shows 1 and 2. */
  async function served() {
    const [view, other] = await open();
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 }), showing({ id: 2 })], { generation, position: 4 });
    return { view, other, generation };
  }

  /** Makes a complete build up to `position` that shows only 3. */
  async function built(view: TransactionsView, position: number): Promise<number> {
    const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: position });
    expect(await view.apply([showing({ id: 3 })], { generation, position })).toEqual([]);
    return generation;
  }

  describe('a view that is built beside the served one', () => {
    test('is begun once, and every process finds it', async () => {
      const { view, other, generation } = await served();
      expect(await view.checkpoint('built')).toBeUndefined();
      const [one, two] = await Promise.all([
        view.startBuild({ storeId: 'store-1', servesFrom: 4 }),
        other.startBuild({ storeId: 'store-1', servesFrom: 4 }),
      ]);
      expect(one.generation).toBe(two.generation);
      expect(one.generation).toBeGreaterThan(generation);
      expect(await other.checkpoint('built')).toEqual(one);
      expect(one).toMatchObject({ storeId: 'store-1', position: 0, servesFrom: 4 });
    });

    test('is begun once, however often processes begin at once', async () => {
      const { view, other } = await served();
      for (let n = 0; n < 20; n++) {
        const [one, two] = await Promise.all(
          [view, other].map((each) => each.startBuild({ storeId: 'store-1', servesFrom: 4 })),
        );
        const { generation = 0 } = one ?? {};
        expect([two?.generation, (await other.checkpoint('built'))?.generation]).toEqual([
          generation,
          generation,
        ]);
        await view.apply([], { generation, position: 99 });
        expect(await view.serveBuild(generation)).toBe(true);
      }
    });

    test('changes nothing of the served view, which goes on', async () => {
      const { view, other, generation } = await served();
      const build = await built(view, 4);
      expect(await ids(other)).toEqual([2, 1]);
      await view.apply([showing({ id: 5 })], { generation, position: 5 });
      expect(await ids(other)).toEqual([5, 2, 1]);
      expect([await rowIn(view, 5, build), await rowIn(view, 3)]).toEqual([undefined, undefined]);
      expect((await view.rowsAfter(0, 9, build)).map(({ id }) => id)).toEqual([3]);
      expect((await view.rowsAfter(1, 1)).map(({ id }) => id)).toEqual([2]);
      expect((await view.rowsAfter(2, 9)).map(({ id }) => id)).toEqual([5]);
    });

    test('is served by the process that switches at once, and by every process within a second', async () => {
      const advance = stoppedTime();
      const { view, other, generation: former } = await served();
      expect(await ids(other)).toEqual([2, 1]);
      const generation = await built(view, 4);
      expect(await view.serveBuild(generation)).toBe(true);
      expect(await ids(view)).toEqual([3]);
      expect(await ids(other)).toEqual([2, 1]);
      advance(SEEN_WITHIN_MS);
      expect(await ids(other)).toEqual([3]);
      expect(await view.leaving()).toEqual([former]);
    });

    test('takes batches after a switch, and a batch for the former one is refused', async () => {
      const { view, other, generation: former } = await served();
      await other.apply([], { generation: former, position: 4 });
      const generation = await built(view, 4);
      expect(await view.serveBuild(generation)).toBe(true);
      expect(await other.apply([showing({ id: 9 })], { generation: former, position: 9 })).toBe('reset');
      expect(await other.checkpoint()).toMatchObject({ generation, position: 4 });
      expect(await other.apply([showing({ id: 6 })], { generation, position: 6 })).toEqual([]);
      expect(await ids(view)).toEqual([6, 3]);
      expect(await view.checkpoint('built')).toBeUndefined();
      expect(await view.serveBuild(generation)).toBe(true);
      expect((await view.rowsAfter(0, 9, generation)).map(({ id }) => id)).toEqual([3, 6]);
    });

    test('does not take the place of a view that is ahead of it', async () => {
      const { view, generation } = await served();
      const build = await built(view, 3);
      expect(await view.serveBuild(build)).toBe(false);
      expect(await ids(view)).toEqual([2, 1]);
      await view.apply([showing({ id: 4 })], { generation: build, position: 5 });
      await view.apply([], { generation, position: 6 });
      expect(await view.serveBuild(build)).toBe(false);
      await view.apply([], { generation: build, position: 6 });
      expect(await view.serveBuild(build)).toBe(true);
      expect(await ids(view)).toEqual([4, 3]);
    });

    test('does not take the place of another before it is complete', async () => {
      const { view } = await served();
      const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 9 });
      await view.apply([showing({ id: 3 })], { generation, position: 8 });
      expect(await view.serveBuild(generation)).toBe(false);
      expect(await ids(view)).toEqual([2, 1]);
    });

    test('is continued where it was, also by another process, and counts what is applied since', async () => {
      const { view, other } = await served();
      const { generation, since } = await view.startBuild({ storeId: 'store-1', servesFrom: 30 });
      expect(since).toMatchObject({ position: 0, events: 0 });
      await view.apply([showing({ id: 1 }), hiding(1)], { generation, position: 10 });
      await view.apply([showing({ id: 1 })], { generation, position: 7 });
      expect(await other.checkpoint('built')).toMatchObject({
        position: 10,
        since: { ...since, events: 3 },
      });
      const continued = await other.startBuild({ storeId: 'store-1', servesFrom: 40 });
      expect(continued).toMatchObject({ generation, position: 10, servesFrom: 30 });
      expect(continued.since).toMatchObject({ position: 10, events: 0 });
      expect(await view.checkpoint('built')).toEqual(continued);
      expect(await rowIn(view, 1, generation)).toBe('hidden');
    });

    test('is dropped where it does not fit the log, unless another process has begun a new one', async () => {
      const { view, other } = await served();
      const unusable = await built(view, 4);
      const next = await view.startBuild({ storeId: 'store-1', servesFrom: 4, unusable });
      expect(next).toMatchObject({ position: 0, anchor: undefined });
      expect(next.generation).toBeGreaterThan(unusable);
      const same = await other.startBuild({ storeId: 'store-1', servesFrom: 4, unusable });
      expect(same.generation).toBe(next.generation);
      expect(await view.serveBuild(unusable)).toBe(false);
    });

    test('knows the newest event that was applied to it, and keeps it where it is served', async () => {
      const { view, other, generation: former } = await served();
      const anchor = (position: number) => ({
        position,
        stream: 'transaction-3',
        revision: 0,
        recordedAtMs: 5,
      });
      const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 9 });
      await view.apply([showing({ id: 3 })], { generation, position: 8, anchor: anchor(7) });
      await other.apply([showing({ id: 3 })], { generation, position: 6, anchor: anchor(6) });
      await other.apply([], { generation, position: 9 });
      expect(await view.checkpoint('built')).toMatchObject({ position: 9, anchor: anchor(7) });
      expect((await view.checkpoint())?.anchor).toBeUndefined();
      await view.apply([showing({ id: 1 })], { generation: former, position: 5, anchor: anchor(5) });
      expect(await other.checkpoint()).toMatchObject({ position: 5, anchor: anchor(5) });
      expect(await other.serveBuild(generation)).toBe(true);
      expect(await view.checkpoint()).toMatchObject({ position: 9, anchor: anchor(7) });
      await view.reset('store-1', 0);
      expect((await other.checkpoint())?.anchor).toBeUndefined();
    });

    test('of another store is dropped: it takes nothing more, and the next one begins empty', async () => {
      const { view, other } = await served();
      const dropped = await built(view, 4);
      const next = await other.startBuild({ storeId: 'store-2', servesFrom: 4 });
      expect(next.generation).toBeGreaterThan(dropped);
      expect(next).toMatchObject({ storeId: 'store-2', position: 0 });
      expect(await view.apply([showing({ id: 3 })], { generation: dropped, position: 9 })).toBe('reset');
      expect(await view.serveBuild(dropped)).toBe(false);
      expect(await rowIn(view, 3, next.generation)).toBeUndefined();
      expect(await ids(view)).toEqual([2, 1]);
    });

    test('a replacement counts for it too, and the same event that is applied later changes nothing of it', async () => {
      const { view } = await served();
      await view.startBuild({ storeId: 'store-1', servesFrom: 4 });
      const replaced = { id: 3, fees: '{"replaced":true}' };
      await view.replace(3, [showing(replaced)]);
      const generation = await built(view, 4);
      expect(await rowIn(view, 3, generation)).toEqual(sampleRow(replaced));
    });

    test('an erasure counts for it too, whatever is applied later', async () => {
      const { view } = await served();
      await view.startBuild({ storeId: 'store-1', servesFrom: 4 });
      await view.replace(3, [erasureOf(3)]);
      const generation = await built(view, 4);
      expect(await rowIn(view, 3, generation)).toBe('hidden');
      expect(await view.serveBuild(generation)).toBe(true);
      expect(await ids(view)).toEqual([]);
    });

    test('once a page of a process lacks an erased row, no later one shows it, whenever the build is served', async () => {
      const advance = stoppedTime();
      const { view, other } = await served();
      expect(await ids(other)).toEqual([2, 1]);
      const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 4 });
      await view.apply([showing({ id: 1 }), showing({ id: 3 })], { generation, position: 4 });
      expect(await view.serveBuild(generation)).toBe(true);
      await view.replace(1, [erasureOf(1)]);
      expect([await ids(view), await ids(other)]).toEqual([[3], [2]]); // the other one still reads the former view
      advance(SEEN_WITHIN_MS);
      expect(await ids(other)).toEqual([3]);
    });

    test('parks what does not fit, and lists it once it is served', async () => {
      const { view } = await served();
      const { generation } = await view.startBuild({ storeId: 'store-1', servesFrom: 4 });
      const odd = { position: 3, stream: 'transaction-9', type: 'Odd', revision: 0, parkReason: 'odd' };
      expect(await view.apply([odd], { generation, position: 4 })).toMatchObject([
        { position: 3, reason: 'odd' },
      ]);
      expect(await view.parked()).toEqual([]);
      expect(await view.serveBuild(generation)).toBe(true);
      expect(await view.parked()).toMatchObject([{ position: 3, reason: 'odd' }]);
    });

    test('while one process switches, over and over, the other serves each page whole', async () => {
      const { view, other, generation: first } = await served();
      let generation = first;
      let done = false;
      const pages: number[][] = [];
      const asking = (async () => {
        while (!done) {
          pages.push(await ids(other));
          await nextTurn();
        }
      })();
      try {
        for (let n = 1; n <= SWITCHES; n++) {
          const position = 4 + n;
          await view.apply([], { generation, position });
          const build = await view.startBuild({ storeId: 'store-1', servesFrom: position });
          for (const id of [1, 2]) {
            const at = id === 1 ? 1 : position;
            await view.apply([showing({ id })], { generation: build.generation, position: at });
          }
          expect(await view.serveBuild(build.generation)).toBe(true);
          generation = build.generation;
          await until(() => pages.length > 2 * n, SWITCH_SEEN_MS);
        }
      } finally {
        done = true;
        await asking;
      }
      expect(pages.length).toBeGreaterThan(SWITCHES);
      expect(new Set(pages.map(String))).toEqual(new Set(['2,1']));
    });

    test('a reset of the served view leaves it', async () => {
      const { view } = await served();
      const generation = await built(view, 4);
      await view.reset('store-1', 4);
      expect((await view.checkpoint('built'))?.generation).toBe(generation);
      expect(await view.serveBuild(generation)).toBe(true);
      expect(await ids(view)).toEqual([3]);
    });
  });
}
