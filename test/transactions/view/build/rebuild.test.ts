import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { RENDERING_VERSION } from '../../../../projections/transactions.ts';
import type { Coordination } from '../../../../src/coordination/coordination.ts';
import { OPERATIONS_STREAM } from '../../../../src/domain/operations-events.ts';
import { FuelError } from '../../../../src/errors.ts';
import { applySegments } from '../../../../src/transactions/view/build/apply-segments.ts';
import type { BuildProgress } from '../../../../src/transactions/view/build/progress.ts';
import {
  type RebuildOptions,
  type RebuildResult,
  rebuildTransactions,
} from '../../../../src/transactions/view/build/rebuild.ts';
import { PROJECTOR_LEASE } from '../../../../src/transactions/view/projector.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';
import { WHOLE } from '../../../support/transactions/opened-view.ts';
import { beforeCall, openProjection, WAIT_MS } from '../../../support/transactions/projector.ts';
import { showing } from '../../../support/transactions/records.ts';
import { until } from '../../../support/waiting.ts';

const log = pino({ level: 'silent' });

/** Transactions 1 to 3 in the log, of which 2 was voided, and a way to rebuild the view of them. */
async function recorded() {
  const opened = openProjection();
  const { store, view, coordination, clock, append, folder } = opened;
  await append('transaction-1', confirmed(1));
  await append('transaction-2', confirmed(2), voided(2));
  await append('transaction-3', confirmed(3));
  const progress: BuildProgress[] = [];
  const rebuild = (options: Partial<RebuildOptions> = {}): Promise<RebuildResult> =>
    rebuildTransactions({
      ...{ store, view, coordination, clock, log, holder: 'rebuild', accept: false },
      signal: new AbortController().signal,
      author: { actor: 'Ada', command: 'test' },
      reason: 'requested',
      onProgress: (step) => void progress.push(step),
      ...options,
    });
  const ids = async (): Promise<number[]> => (await view.page(WHOLE)).rows.map(({ id }) => id);
  const operations = async () => (await store.readStream(OPERATIONS_STREAM)).slice(1);
  const change = (sql: string): void => {
    const db = new DatabaseSync(join(folder, 'transactions.db'));
    db.exec(sql);
    db.close();
  };
  return { ...opened, rebuild, progress, ids, operations, change };
}

describe('a rebuild', () => {
  test('makes a new view, serves it, and is recorded with its author and reason', async () => {
    const { rebuild, progress, ids, operations, view, start, shows, coordination } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    const result = await rebuild();
    expect(result).toMatchObject({
      outcome: 'switched',
      comparison: { records: 2, differing: 0, named: [] },
    });
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
    const arriving = beforeCall(store, 'readStreams', () => {
      pages.push(view.page(WHOLE).then(({ rows }) => rows.length));
      if (arrived) return;
      arrived = true;
      void append('transaction-4', confirmed(4)).then(() => append('transaction-3', voided(3)));
    });
    const result = await rebuild({ store: arriving });
    expect(result.outcome).toBe('switched');
    await until(async () => String(await ids()) === '4,1', WAIT_MS);
    for (const length of await Promise.all(pages)) expect(length).toBeGreaterThanOrEqual(2);
    expect(pages.length).toBeGreaterThan(0);
  });

  test('names the records that differ, and serves the new view only where that is accepted', async () => {
    const { rebuild, start, shows, ids, change, operations, view } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    const { generation = 0 } = (await view.checkpoint()) ?? {};
    await view.apply([showing({ id: 9 })], { generation, position: 0 });
    change("DELETE FROM transactions WHERE id = 1; UPDATE transactions SET fees = '{}' WHERE id = 3");
    const refused = await rebuild();
    expect(refused.outcome).toBe('differs');
    expect(refused.comparison).toEqual({
      records: 2,
      differing: 3,
      named: [
        { transactionId: 1, accountId: 7, kind: 'added' },
        { transactionId: 3, accountId: 7, kind: 'changed' },
        { transactionId: 9, accountId: 7, kind: 'removed' },
      ],
    });
    expect([await ids(), await operations()]).toEqual([[3, 9], []]);
    expect(await rebuild({ accept: true })).toMatchObject({
      outcome: 'switched',
      comparison: { differing: 3 },
    });
    expect(await ids()).toEqual([3, 1]);
    expect((await operations())[0]?.data).toMatchObject({
      reason: 'requested; 3 records differed, which was accepted',
    });
  });

  test('brings a served view up to date that no projector works on, and compares with that', async () => {
    const { rebuild, start, shows, append, ids, holder } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    await append('transaction-4', confirmed(4));
    await append('transaction-1', voided(1));
    const { outcome, comparison } = await rebuild();
    expect([outcome, comparison?.differing]).toEqual(['switched', 0]);
    expect([await ids(), await holder()]).toEqual([[4, 3], undefined]);
  });

  test.each([
    ['of another store', 'another store', 0],
    ['that is ahead of the log', undefined, 1_000],
  ])('does not compare with a view %s, and takes its place', async (_, storeId, position) => {
    const { rebuild, ids, view, store, start, shows } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    const own = (await view.checkpoint())?.storeId ?? '';
    const { generation } = await view.reset(storeId ?? own, 0);
    await view.apply([showing({ id: 9 })], { generation, position });
    expect(await rebuild()).toMatchObject({ outcome: 'switched', comparison: undefined });
    expect(await ids()).toEqual([3, 1]);
    expect((await view.checkpoint())?.position).toBeLessThanOrEqual(await store.head());
  });

  test('of records that are rendered otherwise now serves the new ones without a comparison', async () => {
    const { rebuild, start, shows, change, ids, view } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    change('UPDATE checkpoint SET rendering = rendering - 1');
    expect(await ids()).toEqual([3, 1]);
    expect(await rebuild()).toMatchObject({ outcome: 'switched', comparison: undefined });
    expect(await view.checkpoint()).toMatchObject({ rendering: RENDERING_VERSION });
  });

  test('does not compare with a view that is not complete yet', async () => {
    const { rebuild, start, shows, change, ids } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    change('UPDATE checkpoint SET serves_from = 1000; DELETE FROM transactions WHERE id = 1');
    expect(await rebuild()).toMatchObject({ outcome: 'switched', comparison: undefined });
    expect(await ids()).toEqual([3, 1]);
  });

  test('has given back the work of the projector that it did when it ends', async () => {
    const { rebuild, start, shows, coordination, holder } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    const slow: Coordination = {
      ...coordination,
      acquire: (...given) => coordination.acquire(...given),
      holder: (lease) => coordination.holder(lease),
      async release(lease, by) {
        if (lease === PROJECTOR_LEASE) await new Promise((resolve) => setTimeout(resolve, 80));
        await coordination.release(lease, by);
      },
    };
    expect((await rebuild({ coordination: slow })).outcome).toBe('switched');
    expect(await holder()).toBeUndefined();
  });

  test('ends with the error with which the view that it compares with can not be followed', async () => {
    const { rebuild, start, shows, append, view, operations } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    await append('transaction-4', confirmed(4));
    const broken = new Proxy(view, {
      get(target, name) {
        if (name === 'apply') return () => Promise.reject(new TypeError('a fault'));
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    await expect(rebuild({ view: broken })).rejects.toThrow('a fault');
    expect(await operations()).toEqual([]);
  });

  test('that was interrupted continues where it was, whatever was done', async () => {
    const { rebuild, store, view, start, shows, ids, operations, append } = await recorded();
    for (let id = 4; id < 40; id++) await append(`transaction-${id}`, confirmed(id));
    const { stop } = start();
    await shows(39);
    await stop();
    const before = await ids();
    const { generation } = await view.builds.start(
      (await view.checkpoint())?.storeId ?? '',
      await store.head(),
    );
    let applied = 0;
    for (let failAt = 1; ; failAt++) {
      let calls = 0;
      const failing = beforeCall(store, 'readStream', () => {
        calls += 1;
        if (calls === failAt) throw new Error('killed');
      });
      const result = await rebuild({ store: failing }).catch((error: Error) => error);
      if (!(result instanceof Error)) {
        expect(result.outcome).toBe('switched');
        break;
      }
      expect(result.message).toBe('killed');
      expect([await ids(), await operations()]).toEqual([before, []]);
      applied += 1;
    }
    expect(applied).toBeGreaterThan(0);
    expect((await view.checkpoint())?.generation).toBe(generation);
    expect(await ids()).toEqual(before);
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
    const build = await view.builds.current();
    expect((await build?.checkpoint())?.position).toBe(0); // not finished
    expect((await rebuild()).outcome).toBe('switched');
  });

  test('has one leader: a second one is refused and told how to help', async () => {
    const { rebuild, coordination } = await recorded();
    expect(await coordination.acquire('view-build', 'another', 60_000)).toBe(true);
    const impatient = AbortSignal.timeout(50);
    await expect(rebuild({ signal: impatient })).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('--join'),
    });
  });

  test('is done by any number of workers, which share its segments', async () => {
    const { rebuild, store, view, coordination, start, shows, ids, append } = await recorded();
    for (let id = 4; id < 30; id++) await append(`transaction-${id}`, confirmed(id));
    const { stop } = start();
    await shows(29);
    await stop();
    for (let bound = 3; bound < 30; bound += 3) await view.noteBound(bound);
    const before = await ids();
    const helpers = async (signal: AbortSignal): Promise<void> => {
      const build = await view.builds.current();
      if (build === undefined) throw new Error('nothing is being built');
      const parts = { store, build, coordination, log, signal };
      const counts = await Promise.all(['a', 'b', 'c'].map((holder) => applySegments({ ...parts, holder })));
      expect(counts.reduce((sum, count) => sum + count)).toBe(30);
    };
    expect((await rebuild({ helpers })).outcome).toBe('switched');
    expect(await ids()).toEqual(before);
  });

  test('waits a moment for a store that is unavailable, then ends with its error', async () => {
    const { rebuild, store, ids, start, shows } = await recorded();
    const { stop } = start();
    await shows(3);
    await stop();
    let failures = 0;
    const failing = beforeCall(store, 'readStreams', () => {
      if (failures++ < 2) throw new FuelError('STORE_UNAVAILABLE', 'the disk is full');
    });
    expect((await rebuild({ store: failing })).outcome).toBe('switched');
    expect([failures, await ids()]).toEqual([3, [3, 1]]);
  });

  test('that fails rejects and records nothing', async () => {
    const { rebuild, store, operations } = await recorded();
    const failing = beforeCall(store, 'readStreams', () => {
      throw new Error('no space');
    });
    await expect(rebuild({ store: failing })).rejects.toThrow('no space');
    expect(await operations()).toEqual([]);
  });
});
