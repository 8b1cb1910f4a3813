import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { bindStore } from '../../../src/accounts/store-binding.ts';
import { beginCopy } from '../../../src/accounts/unfinished-copy.ts';
import { checkMissingStore, checkStore } from '../../../src/operator/checks/store.ts';
import { claimDeliveryLog } from '../../../src/push/delivery-log.ts';
import type { StoreName, StoreState } from '../../../src/service/engines/engines.ts';
import { openProjection } from '../../support/transactions/projector.ts';

async function bound() {
  const stores = openProjection();
  const { store, folder, clock, view } = stores;
  const key = randomBytes(32);
  const config = {
    FUEL_ENVIRONMENT: 'staging',
    FUEL_MASTER_KEY: [key],
    FUEL_DATA_DIR: folder,
  } as const;
  const storeId = await bindStore(store, config, { clock });
  await view.reset(storeId, 0);
  const queue = stores.openQueue();
  await claimDeliveryLog(store, queue, clock);
  return { ...stores, queue, embedded: ['store'] as const, isQueueMissing: false, config, storeId };
}

describe('the stores', () => {
  test('that belong together and to the configuration are right', async () => {
    const { config, ...parts } = await bound();
    expect(await checkStore(parts, config)).toMatchObject({ ok: true });
    const absent = { view: undefined, queue: undefined, coordination: undefined };
    expect(await checkStore({ ...parts, ...absent }, config)).toMatchObject({ ok: true });
  });

  test('of which nothing was recorded are right, and nothing is recorded by the look', async () => {
    const { store, view, coordination, folder } = openProjection();
    const config = {
      FUEL_ENVIRONMENT: 'staging',
      FUEL_MASTER_KEY: undefined,
      FUEL_DATA_DIR: folder,
    } as const;
    const finding = await checkStore(
      { store, view, embedded: ['store'] as const, queue: undefined, isQueueMissing: true, coordination },
      config,
    );
    expect(finding).toMatchObject({ ok: true, detail: expect.stringContaining('empty') });
    expect(await store.head()).toBe(0);
  });

  test('of another environment, or with another master key, are wrong', async () => {
    const { config, ...parts } = await bound();
    expect(await checkStore(parts, { ...config, FUEL_ENVIRONMENT: 'production' })).toMatchObject({
      ok: false,
      detail: expect.stringContaining('the store belongs to staging'),
    });
    expect(await checkStore(parts, { ...config, FUEL_MASTER_KEY: [randomBytes(32)] })).toMatchObject({
      ok: false,
      detail: expect.stringContaining('master key'),
    });
  });

  test('with a view or a delivery log of others are wrong', async () => {
    const { config, ...parts } = await bound();
    await parts.view.reset('another', 0);
    expect(await checkStore(parts, config)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('transactions was made from event store another'),
    });
    await parts.view.reset(parts.storeId, 0);
    const queue = parts.openQueue('other.db');
    expect(await checkStore({ ...parts, queue }, config)).toMatchObject({
      ok: false,
      do: expect.stringContaining('fuel verify deliveries --repair --resend-unknown'),
    });
  });

  test('whose delivery log is missing are wrong; one of another version is updated by the next start', async () => {
    const { config, ...parts } = await bound();
    const without = { ...parts, queue: undefined };
    expect(await checkStore(without, config)).toMatchObject({ ok: true });
    expect(await checkStore({ ...without, isQueueMissing: true }, config)).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^the delivery log \S+ of this event store is missing$/),
      do: expect.stringContaining('fuel verify deliveries --repair --resend-unknown'),
    });
  });

  test('are wrong where a view is there and the events are empty', async () => {
    const { store, view, coordination, folder } = openProjection();
    await view.reset('former', 0);
    const config = {
      FUEL_ENVIRONMENT: 'staging',
      FUEL_MASTER_KEY: undefined,
      FUEL_DATA_DIR: folder,
    } as const;
    const parts = {
      store,
      view,
      embedded: ['store'] as const,
      queue: undefined,
      isQueueMissing: true,
      coordination,
    };
    expect(await checkStore(parts, config)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('the view was made from event store former'),
      do: expect.stringContaining('restore the events from the backup'),
    });
  });

  test('into which a copy is not finished are wrong', async () => {
    const { config, ...parts } = await bound();
    await beginCopy(parts.coordination, 'another');
    expect(await checkStore(parts, config)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('fuel store copy'),
    });
  });
});

describe('an event store that is missing', () => {
  const found = (states: Partial<Record<StoreName, StoreState>>) =>
    checkMissingStore(async (name) => states[name] ?? 'missing', '/var/lib/fuel');

  test('is right before the first start, and where only an older version of it is there', async () => {
    expect(await found({})).toMatchObject({ ok: true, detail: 'there is no store yet' });
    expect(await found({ coordination: 'current' })).toMatchObject({ ok: true });
    expect(await found({ store: 'of another version', view: 'current' })).toMatchObject({ ok: true });
  });

  test.each(['view', 'queue', 'subscriptions', 'directory'] as const)(
    'is wrong where what was made from it is there: %s',
    async (name) => {
      expect(await found({ [name]: 'current' })).toMatchObject({
        ok: false,
        detail: expect.stringContaining('/var/lib/fuel/events.db is missing'),
        do: expect.stringContaining('restore the events from the backup'),
      });
    },
  );
});
