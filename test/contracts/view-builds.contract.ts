import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { TransactionsView } from '../../src/transactions/view/transactions-view.ts';
import { WHOLE } from '../support/transactions/opened-view.ts';
import { hiding, showing } from '../support/transactions/records.ts';
import { until } from '../support/waiting.ts';

const SWITCHES = 4;
const SWITCH_SEEN_MS = 5_000;

/** A view that is built beside the served one. `open` gives the view twice, as two processes use it, in an empty place. */
export function viewBuildsContract(open: () => Promise<readonly [TransactionsView, TransactionsView]>): void {
  const ids = async (view: TransactionsView): Promise<number[]> =>
    (await view.page(WHOLE)).rows.map((row) => row.id);

  /** A served view at position 4 that shows 1 and 2. */
  async function served() {
    const [view, other] = await open();
    const { generation } = await view.reset('store-1', 0);
    await view.apply([showing({ id: 1 }), showing({ id: 2 })], { generation, position: 4 });
    return { view, other, generation };
  }

  /** A finished build that shows 3 alone, up to `position`. */
  async function built(view: TransactionsView, position: number) {
    const build = await view.builds.start('store-1', position);
    await build.plan([{ after: 0, upTo: position }]);
    await build.applySegment([showing({ id: 3 })], { upTo: position, position, events: 1 });
    await build.finish();
    return build;
  }

  describe('a view that is built beside the served one', () => {
    test('is begun once, and every process finds it', async () => {
      const { view, other, generation } = await served();
      expect(await view.builds.current()).toBeUndefined();
      const [one, two] = await Promise.all([
        view.builds.start('store-1', 4),
        other.builds.start('store-1', 4),
      ]);
      expect(one.generation).toBe(two.generation);
      expect(one.generation).toBeGreaterThan(generation);
      expect((await other.builds.current())?.generation).toBe(one.generation);
      expect(await one.checkpoint()).toMatchObject({ storeId: 'store-1', position: 0, servesFrom: 4 });
    });

    test('changes nothing of the served view, which goes on', async () => {
      const { view, other, generation } = await served();
      const build = await built(view, 4);
      expect(await ids(other)).toEqual([2, 1]);
      await view.apply([showing({ id: 5 })], { generation, position: 5 });
      expect(await ids(other)).toEqual([5, 2, 1]);
      expect([await build.find(5), await view.find(3)]).toEqual([undefined, undefined]);
      expect((await build.rowsAfter(0, 9)).map(({ id }) => id)).toEqual([3]);
      expect((await view.rowsAfter(1, 1)).map(({ id }) => id)).toEqual([2]);
      expect((await view.rowsAfter(2, 9)).map(({ id }) => id)).toEqual([5]);
    });

    test('is served by every process after a switch, and a batch for the former one is refused', async () => {
      const { view, other, generation } = await served();
      expect(await ids(other)).toEqual([2, 1]);
      const build = await built(view, 4);
      expect(await view.builds.switchTo(build)).toBe(true);
      expect(await ids(view)).toEqual([3]);
      await until(async () => (await ids(other))[0] === 3, SWITCH_SEEN_MS);
      expect(await other.apply([showing({ id: 9 })], { generation, position: 9 })).toBe('reset');
      expect(await other.checkpoint()).toMatchObject({ generation: build.generation, position: 4 });
      const to = { generation: build.generation, position: 6 };
      expect(await other.apply([showing({ id: 6 })], to)).toEqual([]);
      expect(await ids(view)).toEqual([6, 3]);
      expect(await view.builds.current()).toBeUndefined();
      expect(await view.builds.switchTo(build)).toBe(true);
    });

    test('does not take the place of a view that is ahead of it, or before it is finished', async () => {
      const { view, generation } = await served();
      const unfinished = await view.builds.start('store-1', 3);
      expect(await view.builds.switchTo(unfinished)).toBe(false);
      const build = await built(view, 3);
      expect(build.generation).toBe(unfinished.generation);
      expect(await view.builds.switchTo(build)).toBe(false);
      expect(await ids(view)).toEqual([2, 1]);
      await build.apply([showing({ id: 4 })], 5);
      await view.apply([], { generation, position: 6 });
      expect(await view.builds.switchTo(build)).toBe(false);
      await build.apply([], 6);
      expect(await view.builds.switchTo(build)).toBe(true);
      expect(await ids(view)).toEqual([4, 3]);
    });

    test('does not take the place of another before it has reached what that serves from', async () => {
      const { view } = await served();
      const build = await view.builds.start('store-1', 9);
      await build.apply([showing({ id: 3 })], 8);
      expect(await view.builds.switchTo(build)).toBe(false);
      expect(await ids(view)).toEqual([2, 1]);
    });

    test('keeps how far each segment was applied, in any order and repetition, also for other processes', async () => {
      const { view, other } = await served();
      const build = await view.builds.start('store-1', 30);
      await build.plan([
        { after: 0, upTo: 10 },
        { after: 10, upTo: 30 },
      ]);
      await build.plan([
        { after: 5, upTo: 20 },
        { after: 30, upTo: 40 },
      ]);
      const second = await other.builds.current();
      await second?.applySegment([hiding(1)], { upTo: 30, position: 30, events: 2 });
      await build.applySegment([showing({ id: 1 })], { upTo: 10, position: 7, events: 1 });
      await build.applySegment([showing({ id: 1 })], { upTo: 10, position: 6, events: 1 });
      expect(await build.segments()).toEqual([
        { after: 0, upTo: 10, position: 7, events: 2 },
        { after: 10, upTo: 30, position: 30, events: 2 },
        { after: 30, upTo: 40, position: 30, events: 0 },
      ]);
      expect(await build.find(1)).toBe('hidden');
      await build.resume({ atMs: 77, covered: 27, events: 4 });
      expect(await second?.resumed()).toEqual({ atMs: 77, covered: 27, events: 4 });
    });

    test('a bound splits the segment around it, and what follows the last one is a segment', async () => {
      const { view } = await served();
      const build = await view.builds.start('store-1', 30);
      await build.plan([{ after: 0, upTo: 20 }]);
      await build.applySegment([], { upTo: 20, position: 8, events: 5 });
      for (const bound of [8, 12, 20, 8, 25]) await build.noteBound(bound);
      expect(await build.segments()).toEqual([
        { after: 0, upTo: 8, position: 8, events: 5 },
        { after: 8, upTo: 12, position: 8, events: 0 },
        { after: 12, upTo: 20, position: 12, events: 0 },
        { after: 20, upTo: 25, position: 25, events: 0 },
      ]);
    });

    test('begins with the bounds that were noted in the served view, of the same store alone', async () => {
      const { view } = await served();
      for (const bound of [10, 20, 30]) await view.noteBound(bound);
      const build = await view.builds.start('store-1', 25);
      expect(await build.segments()).toEqual([
        { after: 0, upTo: 10, position: 0, events: 0 },
        { after: 10, upTo: 20, position: 10, events: 0 },
      ]);
      const ofAnother = await view.builds.start('store-2', 25);
      expect(ofAnother.generation).toBeGreaterThan(build.generation);
      expect(await ofAnother.segments()).toEqual([]);
    });

    test('that was dropped takes nothing more, and the next one begins empty', async () => {
      const { view, other } = await served();
      const build = await built(view, 4);
      await other.builds.drop(build);
      expect(await build.checkpoint()).toBeUndefined();
      const writes = [
        () => build.plan([{ after: 4, upTo: 9 }]),
        () => build.noteBound(2),
        () => build.applySegment([], { upTo: 4, position: 4, events: 0 }),
        () => build.apply([], 9),
        () => build.finish(),
        () => build.resume({ atMs: 0, covered: 0, events: 0 }),
      ];
      for (const write of writes) await expect(write()).rejects.toMatchObject({ code: 'REFUSED' });
      expect(await view.builds.switchTo(build)).toBe(false);
      const next = await view.builds.start('store-1', 4);
      expect(next.generation).toBeGreaterThan(build.generation);
      expect(await next.find(3)).toBeUndefined();
      expect(await ids(view)).toEqual([2, 1]);
    });

    test('an erasure counts for it too, whatever is applied later', async () => {
      const { view } = await served();
      const build = await view.builds.start('store-1', 4);
      await view.erase(3);
      await built(view, 4);
      expect(await build.find(3)).toBe('hidden');
      expect(await view.builds.switchTo(build)).toBe(true);
      expect(await ids(view)).toEqual([]);
    });

    test('parks what does not fit, and lists it once it is served', async () => {
      const { view } = await served();
      const build = await view.builds.start('store-1', 4);
      await build.plan([{ after: 0, upTo: 4 }]);
      const odd = { position: 3, stream: 'transaction-9', type: 'Odd', revision: 0, parkReason: 'odd' };
      expect(await build.applySegment([odd], { upTo: 4, position: 4, events: 1 })).toMatchObject([
        { position: 3, reason: 'odd' },
      ]);
      expect(await view.parked()).toEqual([]);
      await build.finish();
      expect(await view.builds.switchTo(build)).toBe(true);
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
          const build = await view.builds.start('store-1', position);
          await build.plan([{ after: (await build.segments()).at(-1)?.upTo ?? 0, upTo: position }]);
          for (const { upTo } of await build.segments()) {
            const change = showing({ id: upTo % 2 === 0 ? 1 : 2 });
            await build.applySegment([change, showing({ id: 1 })], { upTo, position: upTo, events: 1 });
          }
          await build.finish();
          expect(await view.builds.switchTo(build)).toBe(true);
          generation = build.generation;
          await until(async () => pages.length > 2 * n, SWITCH_SEEN_MS);
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
      const build = await built(view, 4);
      await view.reset('store-1', 4);
      expect((await view.builds.current())?.generation).toBe(build.generation);
      expect(await view.builds.switchTo(build)).toBe(true);
      expect(await ids(view)).toEqual([3]);
    });
  });
}
