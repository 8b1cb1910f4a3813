import { describe, expect, test } from 'vitest';
import { RENDERING_VERSION } from '../../../../projections/transactions.ts';
import { FuelError } from '../../../../src/base/errors.ts';
import type { EventStore, SubscribeOptions } from '../../../../src/event-store/event-store.ts';
import { Unreadable } from '../../../../src/event-store/recorded-event.ts';
import type { BuildProgress } from '../../../../src/pull/view/checkpoint.ts';
import { replacing, Steps } from '../../../support/interposed.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';
import { WHOLE } from '../../../support/transactions/opened-view.ts';
import { beforeCall } from '../../../support/transactions/projector.ts';
import { sampleRecord, showing } from '../../../support/transactions/records.ts';
import { until } from '../../../support/waiting.ts';
import { projected, recorded, stepping } from './rebuilding.ts';

describe('a rebuild', () => {
  test('makes a new view, serves it, and is recorded with its author and reason', async () => {
    const { rebuild, progress, ids, operations, view, store, start, shows, coordination } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    const result = await rebuild();
    expect(result).toEqual({ outcome: 'switched', position: (await store.head()) - 1 });
    expect(await ids()).toEqual([3, 1]);
    expect((await view.checkpoint())?.generation).toBeGreaterThan(generation);
    expect(progress.at(-1)?.percent).toBe(100);
    const [event, ...more] = await operations();
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'ViewRebuilt',
      data: { view: 'transactions', reason: 'requested' },
      metadata: { actor: 'Ada' },
    });
    expect(await coordination.holder('view-build')).toBeUndefined();
  });

  test('leaves the projector its work and its lease, and the projector goes on with the new view', async () => {
    const { rebuild, start, shows, append, holder, view } = await recorded();
    const { said } = start();
    await shows(3);
    const before = await view.checkpoint();
    await rebuild();
    await append('transaction-4', confirmed(4));
    await shows(4);
    expect((await view.checkpoint())?.generation).toBeGreaterThan(before?.generation ?? 0);
    expect([await holder(), said('lost its lease')]).toEqual(['one', false]);
  });

  test('serves the former view whole all the while, and the arrivals with it', async () => {
    const { rebuild, view, store, start, shows, append, ids } = await recorded();
    start();
    await shows(3);
    const pages: Promise<number>[] = [];
    let arrived = false;
    const arriving = beforeCall(store, 'subscribe', () => {
      pages.push(view.page(WHOLE).then(({ rows }) => rows.length));
      if (arrived) return;
      arrived = true;
      void append('transaction-4', confirmed(4)).then(() => append('transaction-3', voided(3)));
    });
    const result = await rebuild({ store: arriving });
    expect(result.outcome).toBe('switched');
    await until(async () => String(await ids()) === '4,1');
    for (const length of await Promise.all(pages)) expect(length).toBeGreaterThanOrEqual(2);
    expect(pages.length).toBeGreaterThan(0);
  });

  test('serves what the events call for, whatever the former view shows', async () => {
    const { rebuild, ids, view } = await projected();
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    await view.apply([showing({ id: 9 })], { generation, position: 0 });
    await view.replace(1, []);
    const third = (await view.find([3])).get(3)?.shown;
    if (third) await view.replace(3, [showing({ ...third, record: sampleRecord({ id: 3 }) })]);
    expect(await ids()).toEqual([3, 9]);
    expect((await rebuild()).outcome).toBe('switched');
    expect(await ids()).toEqual([3, 1]);
    expect((await view.find([3])).get(3)?.shown).toEqual(third);
  });

  test('brings the view up to date where no projector works, and needs none', async () => {
    const { rebuild, append, ids, holder } = await projected();
    await append('transaction-4', confirmed(4));
    await append('transaction-1', voided(1));
    expect((await rebuild()).outcome).toBe('switched');
    expect([await ids(), await holder()]).toEqual([[4, 3], undefined]);
  });

  test.each([
    ['of another store', 'another store', 0],
    ['that is ahead of the log', undefined, 1_000],
  ])('takes the place of a view %s', async (_, storeId, position) => {
    const { rebuild, ids, view, store } = await projected();
    const own = (await view.checkpoint())?.storeId ?? '';
    const { generation } = await view.reset(storeId ?? own, 0);
    await view.apply([showing({ id: 9 })], { generation, position });
    expect((await rebuild()).outcome).toBe('switched');
    expect(await ids()).toEqual([3, 1]);
    expect((await view.checkpoint())?.position).toBeLessThanOrEqual(await store.head());
  });

  test('takes the place of a view of an older rendering, which is served until then', async () => {
    const { rebuild, alter, ids, view } = await projected();
    await alter((made) => ({ ...made, rendering: RENDERING_VERSION - 1 }));
    expect(await ids()).toEqual([3, 1]);
    expect((await rebuild()).outcome).toBe('switched');
    expect(await view.checkpoint()).toMatchObject({ rendering: RENDERING_VERSION });
  });

  test('takes the place of a view that is not complete yet', async () => {
    const { rebuild, alter, ids, view } = await projected();
    await alter((made) => ({ ...made, servesFrom: 1_000 }));
    await view.replace(1, []);
    expect((await rebuild()).outcome).toBe('switched');
    expect(await ids()).toEqual([3, 1]);
  });

  describe('at a damaged event', () => {
    const data = new Unreadable('garbled', { isDamage: true });
    const garbled = (store: EventStore) =>
      replacing(store, {
        async *subscribe(options: SubscribeOptions) {
          for await (const batch of store.subscribe(options))
            yield {
              ...batch,
              events: batch.events.map((event) => (event.position === 4 ? { ...event, data } : event)),
            };
        },
      });

    test('ends before it replaces a view, which may have all that is left of it', async () => {
      const { rebuild, store, ids, operations, view } = await projected();
      const before = (await view.checkpoint())?.generation;
      await expect(rebuild({ store: garbled(store) })).rejects.toMatchObject({
        code: 'STORE_DAMAGED',
        message: expect.stringContaining('event 0 of transaction-3 (position 4) cannot be read'),
      });
      expect([await ids(), (await view.checkpoint())?.generation]).toEqual([[3, 1], before]);
      expect(await operations()).toEqual([]);
    });

    test('goes on where there is no view that could be served', async () => {
      const { rebuild, store, ids } = await recorded();
      expect((await rebuild({ store: garbled(store) })).outcome).toBe('switched');
      expect(await ids()).toEqual([1]);
    });
  });

  test('ended before any of its steps leaves the former view served, and the next call continues', async () => {
    const all = new Steps();
    expect((await stepping(await projected(), all)).outcome).toBe('switched');
    expect([...new Set(all.done)]).toEqual(['startBuild', 'apply', 'serveBuild']);
    expect(all.done.filter((step) => step === 'apply').length).toBeGreaterThan(2);
    for (let most = 0; most < all.done.length; most++) {
      const opened = await projected();
      const { ids, rebuild, view, operations } = opened;
      await expect(stepping(opened, new Steps(most))).rejects.toThrow('ended before');
      expect([most, await ids()]).toEqual([most, [3, 1]]);
      const build = await view.checkpoint('built');
      expect(await operations()).toEqual([]);
      expect(await rebuild()).toMatchObject({ outcome: 'switched' });
      expect([most, await ids()]).toEqual([most, [3, 1]]);
      if (build !== undefined) expect((await view.checkpoint())?.generation).toBe(build.generation);
      expect(await view.checkpoint('built')).toBeUndefined();
      expect(await operations()).toHaveLength(1);
    }
  });

  test('asked to stop leaves the former view served and what was built', async () => {
    const { rebuild, view, start, shows, ids } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    const stopping = new AbortController();
    const result = await rebuild({ signal: stopping.signal, onProgress: () => stopping.abort() });
    expect(result.outcome).toBe('interrupted');
    expect(await ids()).toEqual([3, 1]);
    const build = await view.checkpoint('built');
    expect(build?.position).toBe(build?.servesFrom);
    expect((await rebuild()).outcome).toBe('switched');
    expect((await view.checkpoint())?.generation).toBe(build?.generation);
  });

  test('asked to stop at its end serves nothing, and the next call continues', async () => {
    const { rebuild, view } = await projected();
    const before = (await view.checkpoint())?.generation;
    const stopping = new AbortController();
    const stopAtEnd = ({ percent }: BuildProgress): void => {
      if (percent === 100) stopping.abort();
    };
    expect((await rebuild({ onProgress: stopAtEnd, signal: stopping.signal })).outcome).toBe('interrupted');
    expect((await view.checkpoint())?.generation).toBe(before);
    expect((await rebuild()).outcome).toBe('switched');
  });

  test('is done by one process at a time: a second one is refused', async () => {
    const { rebuild, coordination } = await recorded();
    expect(await coordination.acquire('view-build', 'another', 60_000)).toBe(true);
    const impatient = AbortSignal.timeout(50);
    await expect(rebuild({ signal: impatient })).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('fuel projection status'),
    });
  });

  test('waits a moment for a store that is unavailable, then ends with its error', async () => {
    const { rebuild, view, ids, start, shows } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    let failures = 0;
    const failing = beforeCall(view, 'apply', () => {
      if (failures++ < 2) throw new FuelError('STORE_UNAVAILABLE', 'the disk is full');
    });
    expect((await rebuild({ view: failing })).outcome).toBe('switched');
    expect([failures > 2, await ids()]).toEqual([true, [3, 1]]);
  });

  test('that fails rejects and records nothing', async () => {
    const { rebuild, view, operations, coordination } = await recorded();
    const failing = beforeCall(view, 'apply', () => {
      throw new Error('no space');
    });
    await expect(rebuild({ view: failing })).rejects.toThrow('no space');
    expect([await operations(), await coordination.holder('view-build')]).toEqual([[], undefined]);
  });
});
