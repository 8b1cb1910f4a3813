import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/domain/values/date-time.ts';
import { recordOperations } from '../../../src/event-store/operations.ts';
import { newestOperations } from '../../../src/operator/audit/newest-events.ts';
import type { Facts } from '../../../src/operator/checks/facts.ts';
import { checkProof, checkStore } from '../../../src/operator/checks/store.ts';
import { claimDeliveryLog } from '../../../src/push/delivery-log.ts';
import type { StoreName, StoreState } from '../../../src/service/engines/engines.ts';
import { bindStore } from '../../../src/service/stores/store-binding.ts';
import { beginCopy } from '../../../src/service/stores/unfinished-copy.ts';
import { said } from '../../support/checks/facts.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';
import { record } from '../../support/event-store/store-events.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { seal } from '../../support/seals/sealing.ts';
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
  return { ...stores, queue, config, storeId };
}

type Parts = Partial<Record<StoreName, unknown>>;

/** Checks stores of which only these exist. */
function check(parts: Parts, config: object, states: Partial<Record<StoreName, StoreState>> = {}) {
  const state = async (name: StoreName) =>
    states[name] ?? (parts[name] === undefined ? 'missing' : 'current');
  const engines = { embedded: ['store'], state };
  const find = async (name: StoreName) => parts[name];
  return said(checkStore({ config, engines, find, damage: async () => [] } as unknown as Facts));
}

describe('the stores', () => {
  test('that belong to each other and to the configuration are right', async () => {
    const { config, ...parts } = await bound();
    expect(await check(parts, config)).toMatchObject({ ok: true });
    const other = 'of another version';
    const states = { view: other, queue: other, coordination: other } as const;
    expect(await check({ store: parts.store }, config, states)).toMatchObject({ ok: true });
  });

  test('in which nothing was recorded are right, and the check records nothing', async () => {
    const { store, view, coordination, folder } = openProjection();
    const config = {
      FUEL_ENVIRONMENT: 'staging',
      FUEL_MASTER_KEY: undefined,
      FUEL_DATA_DIR: folder,
    } as const;
    const finding = await check({ store, view, coordination }, config);
    expect(finding).toMatchObject({ ok: true, detail: expect.stringContaining('empty') });
    expect(await store.head()).toBe(0);
  });

  test('of another environment, or with another master key, are wrong', async () => {
    const { config, ...parts } = await bound();
    expect(await check(parts, { ...config, FUEL_ENVIRONMENT: 'production' })).toMatchObject({
      ok: false,
      detail: expect.stringContaining('the store belongs to staging'),
    });
    expect(await check(parts, { ...config, FUEL_MASTER_KEY: [randomBytes(32)] })).toMatchObject({
      ok: false,
      detail: expect.stringContaining('master key'),
    });
  });

  test('with a view or a delivery log of another store are wrong', async () => {
    const { config, ...parts } = await bound();
    await parts.view.reset('another', 0);
    expect(await check(parts, config)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('transactions was made from event store another'),
    });
    await parts.view.reset(parts.storeId, 0);
    const queue = parts.openQueue('other.db');
    expect(await check({ ...parts, queue }, config)).toMatchObject({
      ok: false,
      do: expect.stringContaining('fuel verify deliveries --repair --resend-unknown'),
    });
  });

  test('whose delivery log is missing are wrong; one of another version is updated by the next start', async () => {
    const { config, ...parts } = await bound();
    const without = { ...parts, queue: undefined };
    expect(await check(without, config, { queue: 'of another version' })).toMatchObject({ ok: true });
    expect(await check(without, config)).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^the delivery log \S+ of this event store is missing$/),
      do: expect.stringContaining('fuel verify deliveries --repair --resend-unknown'),
    });
  });

  test('are wrong if there is a view but no event', async () => {
    const { store, view, coordination, folder } = openProjection();
    await view.reset('former', 0);
    const config = {
      FUEL_ENVIRONMENT: 'staging',
      FUEL_MASTER_KEY: undefined,
      FUEL_DATA_DIR: folder,
    } as const;
    expect(await check({ store, view, coordination }, config)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('the view was made from event store former'),
      do: expect.stringContaining('restore the events from the backup'),
    });
  });

  test('are wrong if a copy into them is not finished', async () => {
    const { config, ...parts } = await bound();
    await beginCopy(parts.coordination, 'another');
    expect(await check(parts, config)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('fuel store copy'),
    });
  });
});

describe('an event store that is missing', () => {
  const found = (states: Partial<Record<StoreName, StoreState>>) =>
    check({}, { FUEL_DATA_DIR: '/var/lib/fuel' }, states);

  test('is right before the first start, and if there is one of another version', async () => {
    expect(await found({})).toMatchObject({ ok: true, detail: 'there is no store yet' });
    expect(await found({ coordination: 'current' })).toMatchObject({ ok: true });
    expect(await found({ store: 'of another version', view: 'current' })).toMatchObject({ ok: true });
  });

  test.each(['view', 'queue', 'subscriptions', 'accounts'] as const)(
    'is wrong if what was made from it is there: %s',
    async (name) => {
      expect(await found({ [name]: 'current' })).toMatchObject({
        ok: false,
        detail: expect.stringContaining('/var/lib/fuel/events.db is missing'),
        do: expect.stringContaining('restore the events from the backup'),
      });
    },
  );
});

test('a proof that is two days old is wrong if more has been sealed since; it says what was sealed and proven', async () => {
  const clock = new FakeClock();
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const facts = { store: async () => store, operations: () => newestOperations(store), clock };
  const look = () => said(checkProof(facts));
  expect(await look()).toMatchObject({ ok: true, detail: expect.stringContaining('nothing is sealed') });
  await record(store, 'account-1', 'a', 'b');
  await seal(store);
  expect(await look()).toMatchObject({ ok: true, detail: expect.stringContaining('nothing was proven') });
  const proven = { type: 'LogProven', data: { size: 2, root: '' } } as const;
  await recordOperations(store, [proven], { author: { actor: 'system', command: 'night' }, clock });
  clock.advance(3 * DAY_MS);
  expect(await look()).toMatchObject({
    ok: true,
    detail: expect.stringContaining('the first 2 proven'),
  });
  await record(store, 'account-1', 'c');
  await seal(store);
  expect(await look()).toMatchObject({ ok: false, do: expect.stringContaining('fuel audit verify') });
});
