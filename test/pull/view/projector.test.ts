import { describe, expect, test } from 'vitest';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { prepareView } from '../../../src/pull/view/projector.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';
import { beforeCall, openProjection } from '../../support/transactions/projector.ts';
import { rowIn } from '../../support/transactions/row-in.ts';
import { until } from '../../support/waiting.ts';

const unavailable = (): never => {
  throw new FuelError('STORE_UNAVAILABLE', 'unavailable');
};

describe('a projector', () => {
  test('brings a new view to the end of the log, and shows what comes from then on', async () => {
    const { append, start, shows, view, store, clock } = openProjection();
    await append('transaction-1', confirmed(1));
    await append('transaction-2', confirmed(2), voided(2));
    await storeIdentity(store, clock);
    const head = await store.head();
    const { stop } = start();
    await shows(1);
    expect(await rowIn(view, 2)).toBe('hidden');
    expect(await view.checkpoint()).toMatchObject({ servesFrom: head });
    await append('transaction-3', confirmed(3));
    await shows(3);
    await stop();
    await append('transaction-4', confirmed(4));
    expect(await rowIn(view, 4)).toBeUndefined();
  });

  test('that is far behind applies more than a thousand events in one commit', async () => {
    const { append, start, shows, view } = openProjection();
    const last = 1_200;
    for (let id = 1; id <= last; id++) await append(`transaction-${id}`, confirmed(id));
    const applied: number[] = [];
    const counted = beforeCall(view, 'apply', (changes) => void applied.push((changes as unknown[]).length));
    start({ view: counted });
    await shows(last);
    expect(Math.max(...applied)).toBe(last);
  });

  test('continues from the checkpoint of a view that is there', async () => {
    const { append, start, shows, view, store, clock } = openProjection();
    await append('transaction-1', confirmed(1));
    const { generation } = await view.reset(await storeIdentity(store, clock), 0);
    await view.apply([], { generation, position: await store.head() });
    await append('transaction-2', confirmed(2));
    start();
    await shows(2);
    expect(await rowIn(view, 1)).toBeUndefined();
    expect(await view.checkpoint()).toMatchObject({ generation });
  });

  test('continues behind the newest event that it has applied: the log may be another one from there on', async () => {
    const { append, start, shows, view, store } = openProjection();
    await append('transaction-1', confirmed(1));
    const first = start();
    await shows(1);
    await first.stop();
    const { generation = 0, position = 0 } = (await view.checkpoint()) ?? {};
    await view.apply([], { generation, position: position + 2 }); // as after two other events, which are lost
    await append('transaction-2', confirmed(2));
    await append('transaction-3', confirmed(3));
    expect(await store.head()).toBe(position + 2);
    start();
    await shows(2);
    await shows(3);
  });

  test('parks an event that cannot be shown, logs it once with its position, and continues', async () => {
    const { append, start, shows, view } = openProjection();
    await append('transaction-1', { type: 'TransactionGuessed', data: {} }, confirmed(1));
    const { lines } = start();
    await shows(1);
    const [event] = await view.parked();
    const { parkedAtMs: _, ...place } = event ?? {};
    const errors = lines.filter(({ level }) => level === 50);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject(place);
    expect(errors[0]).not.toHaveProperty('parkedAtMs');
  });

  test('starts over when the view is reset meanwhile', async () => {
    const { append, start, shows, view, store, clock } = openProjection();
    await append('transaction-1', confirmed(1));
    const { said } = start();
    await shows(1);
    await view.reset(await storeIdentity(store, clock), 0);
    expect(await rowIn(view, 1)).toBeUndefined();
    await append('transaction-2', confirmed(2));
    await shows(1);
    await shows(2);
    expect(said('lost its lease')).toBe(false);
  });

  test('logs the begin and the end of each outage', async () => {
    const { append, start, shows, view } = openProjection();
    let failures = 1;
    const failing = beforeCall(view, 'apply', () => (failures-- > 0 ? unavailable() : undefined));
    await append('transaction-1', confirmed(1));
    const { lines } = start({ view: failing });
    await shows(1);
    failures = 1;
    await append('transaction-2', confirmed(2));
    await shows(2);
    const outages = () =>
      lines
        .map(({ msg }) => String(msg))
        .filter((msg) => msg.includes('a store is un') || msg.includes('is available again'));
    const one = [
      'projector waits: a store is unavailable',
      'projector continues: the store is available again',
    ];
    await until(() => outages().length === 4);
    expect(outages()).toEqual([...one, ...one]);
  });

  test('on standby too', async () => {
    const { start, coordination } = openProjection();
    let failures = 1;
    const failing = {
      ...coordination,
      release: async () => undefined,
      acquire: async () => (failures-- > 0 ? unavailable() : false),
    };
    const { said } = start({ coordination: failing as unknown as Coordination });
    await until(() => said('projector continues: the store is available again'));
  });

  test('ends with any other error', async () => {
    const { start, view } = openProjection();
    const failing = beforeCall(view, 'checkpoint', () => {
      throw new Error('no space');
    });
    await expect(start({ view: failing }).ended).rejects.toThrow('no space');
  });

  describe('that gathers what comes within a moment of a write into the next one', () => {
    test('writes once for what came meanwhile', async () => {
      const { append, start, shows, view } = openProjection();
      await append('transaction-1', confirmed(1));
      let writes = 0;
      start({ view: beforeCall(view, 'apply', () => void writes++), gatherMs: 500 });
      await shows(1);
      for (const id of [2, 3, 4]) await append(`transaction-${id}`, confirmed(id));
      await shows(4);
      expect(writes).toBe(2);
    });

    test('does not wait for more while it is behind, and not where it stops', async () => {
      const { append, start, shows, store } = openProjection();
      for (const id of [1, 2, 3]) await append(`transaction-${id}`, confirmed(id));
      const inSteps = beforeCall(store, 'subscribe', (options) =>
        Object.assign(options as object, { batchSize: 1 }),
      );
      const { stop } = start({ store: inSteps, gatherMs: 60_000 });
      await shows(3);
      await stop();
    });
  });
});

describe('of several projectors', () => {
  test('one is active; another takes over at once when that one stops', async () => {
    const { append, start, shows, holder, view } = openProjection();
    const one = start({ holder: 'one' });
    await until(() => one.said('is active'));
    const two = start({ holder: 'two' });
    await append('transaction-1', confirmed(1));
    await shows(1);
    expect([await holder(), two.said('is active')]).toEqual(['one', false]);
    await one.stop();
    await append('transaction-2', confirmed(2));
    await shows(2); // the clock does not move, so the lease was released and did not expire
    expect(await holder()).toBe('two');
    expect(await view.parked()).toEqual([]);
  });
});

describe('a view is prepared', () => {
  test('by a reset, to be served from the present end of the log', async () => {
    const { store, view, clock, append } = openProjection();
    await append('transaction-1', confirmed(1));
    const storeId = await storeIdentity(store, clock);
    const head = await store.head();
    expect(await prepareView({ store, view, clock })).toMatchObject({
      storeId,
      position: 0,
      servesFrom: head,
    });
  });

  test('by refusing one of another store, or ahead of the end of the log', async () => {
    const { store, view, clock, start } = openProjection();
    await view.reset('another store', 0);
    await expect(start().ended).rejects.toMatchObject({ code: 'STORE_MISMATCH' });
    const { generation } = await view.reset(await storeIdentity(store, clock), 0);
    await view.apply([], { generation, position: (await store.head()) + 1 });
    await expect(prepareView({ store, view, clock })).rejects.toMatchObject({ code: 'STORE_MISMATCH' });
  });

  test('by refusing one of a log that was replaced by an older copy and has grown since', async () => {
    const { store, view, clock, append } = openProjection();
    const { generation } = await view.reset(await storeIdentity(store, clock), 0);
    const anchor = { position: 2, stream: 'transaction-1', revision: 0, recordedAtMs: 1 };
    await view.apply([], { generation, position: 2, anchor });
    await append('transaction-2', confirmed(2));
    await append('transaction-3', confirmed(3));
    await expect(prepareView({ store, view, clock })).rejects.toMatchObject({ code: 'STORE_MISMATCH' });
  });
});
