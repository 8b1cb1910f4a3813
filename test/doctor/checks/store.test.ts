import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { bindStore } from '../../../src/accounts/store-binding.ts';
import { claimDeliveryLog } from '../../../src/deliveries/delivery-log.ts';
import { checkStore } from '../../../src/doctor/checks/store.ts';
import { beginCopy } from '../../../src/store-copy/unfinished-copy.ts';
import { openProjection } from '../../support/transactions/projector.ts';

async function bound() {
  const stores = openProjection();
  const { store, folder, clock, view } = stores;
  const key = randomBytes(32);
  const config = { FUEL_ENVIRONMENT: 'staging', FUEL_MASTER_KEY: [key], FUEL_DATA_DIR: folder } as const;
  const storeId = await bindStore(store, config, { clock });
  await view.reset(storeId, 0);
  const queue = stores.openQueue();
  await claimDeliveryLog(store, queue, clock);
  return { ...stores, queue, config, storeId };
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
    const finding = await checkStore({ store, view, queue: undefined, coordination }, config);
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

  test('into which a copy is not finished are wrong', async () => {
    const { config, ...parts } = await bound();
    await beginCopy(parts.coordination, 'another');
    expect(await checkStore(parts, config)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('fuel store copy'),
    });
  });
});
