import { expect, onTestFinished, test } from 'vitest';
import { RowsFreshness } from '../../../src/accounts/rows/freshness.ts';
import { PROGRESS, type ProgressRow } from '../../../src/accounts/rows/tables.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { opened } from '../../support/accounts/account-samples.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/waiting.ts';

const MAX_AGE_MS = 60_000;

/** Looks at this progress, on the store of a server or on one of this machine that ends at `end`. */
async function looking({ onThisMachine = false } = {}) {
  const { store, clock, account } = openPushStores();
  const storeId = await storeIdentity(store, clock);
  const steady = new FakeClock();
  const progress: { -readonly [K in keyof ProgressRow]: ProgressRow[K] } = {
    name: 'accounts',
    store_id: storeId,
    position: 0,
    reached: 0,
    anchor: null,
    complete_at: null,
  };
  const server = { nowMs: 1_000_000, isUnavailable: false, looks: 0 };
  const tables = {
    async get(table: unknown) {
      server.looks += 1;
      if (server.isUnavailable) throw new FuelError('STORE_UNAVAILABLE', 'away');
      return table === PROGRESS ? [{ ...progress }] : [];
    },
    now: async () => server.nowMs,
  } as never;
  const of = onThisMachine ? { ...store, end: () => 0 } : store;
  const rows = new RowsFreshness({ tables, store: of, clock, steady, maxAgeMs: MAX_AGE_MS });
  const stopping = new AbortController();
  const ended = rows.run(stopping.signal);
  onTestFinished(async () => {
    stopping.abort();
    await ended;
  });
  const looked = async (): Promise<void> => {
    const { looks } = server;
    await until(() => server.looks > looks + 1);
  };
  await until(() => server.looks > 1);
  return { rows, progress, server, steady, looked, account };
}

test('rows are not used before they are complete, nor by what was written before this process looked', async () => {
  const { rows, progress, server, looked } = await looking();
  expect(rows.condition).toMatch(/being made/);
  progress.complete_at = server.nowMs;
  await until(() => rows.isFresh);
  expect(rows.condition).toBe(true);
  await looked();

  const late = await looking();
  late.progress.complete_at = late.server.nowMs + 5_000; // of a clock that was ahead, or before a restart
  await late.looked();
  expect(late.rows.isFresh).toBe(false);
});

test('rows that were complete too long ago are not used until they are complete again', async () => {
  const { rows, progress, server, steady } = await looking();
  progress.complete_at = server.nowMs - 59_000;
  await until(() => rows.isFresh);
  steady.advance(2_000);
  expect(rows.isFresh).toBe(false);
  expect(rows.condition).toMatch(/not heard from the event store/);
  server.nowMs += 2_000;
  progress.complete_at = server.nowMs;
  await until(() => rows.isFresh);
});

test('rows age while their store cannot be reached', async () => {
  const { rows, progress, server, steady } = await looking();
  progress.complete_at = server.nowMs;
  await until(() => rows.isFresh);
  server.isUnavailable = true;
  steady.advance(MAX_AGE_MS);
  expect(rows.isFresh).toBe(true);
  steady.advance(1);
  expect(rows.isFresh).toBe(false);
});

test('on the machine of the log, rows are used for as long as no event of an account is after them', async () => {
  const { rows, progress, server, steady, looked, account } = await looking({ onThisMachine: true });
  progress.position = await account(opened());
  progress.complete_at = server.nowMs - 2 * MAX_AGE_MS;
  await until(() => rows.isFresh);
  await account({ type: 'IntegrationEnabled', data: { account_id: 7 } });
  steady.advance(MAX_AGE_MS + 1);
  await looked();
  expect(rows.isFresh).toBe(false);
});
