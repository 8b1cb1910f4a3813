import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { runSealer } from '../../src/seals/sealer.ts';
import { lastSeal, sealOf } from '../../src/seals/seals.ts';
import { verifyLog } from '../../src/seals/verify-log.ts';
import { MemoryLog, openMemoryEventStore } from '../support/engines/memory-log.ts';
import { record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { key, seal, signer } from '../support/seals/sealing.ts';
import { until } from '../support/waiting.ts';

const opened = () => openMemoryEventStore(new MemoryLog(), new FakeClock());
const coordination = { acquire: async () => true, release: async () => undefined };
const sizesIn = async (store: EventStore) =>
  (await store.readStream('seals')).map((event) => sealOf(event)?.size);

function run(store: EventStore, limits: { leaves?: number; withinMs?: number }) {
  const stopping = new AbortController();
  const running = runSealer({
    store,
    signer,
    coordination,
    holder: 'this',
    clock: new FakeClock(),
    log: silentLog,
    limits,
    signal: stopping.signal,
  });
  return async () => {
    stopping.abort();
    await running;
  };
}

test('much is sealed in parts, and each names its own leaves', async () => {
  const store = opened();
  const names = Array.from({ length: 1_700 }, (_, at) => `e${at}`);
  await record(store, 'account-1', ...names);
  await seal(store, { leaves: 600 });
  expect(await sizesIn(store)).toEqual([1_000, 1_701]); // with the seal before
  const last = await lastSeal(store);
  const places = Array.from({ length: 700 }, (_, at) => `account-1@${1_000 + at}`);
  expect(last?.prints().map(({ place }) => place)).toEqual([...places, 'seals@0']);
  expect(await verifyLog({ store, key })).toMatchObject({ fault: undefined, seals: 2, leaves: 1_702 });
});

test('a seal alone is not sealed, and nothing waits for longer than it may', async () => {
  const store = opened();
  await record(store, 'account-1', 'a');
  const stop = run(store, { withinMs: 100 });
  await until(async () => (await sizesIn(store)).length === 1);
  await sleep(300);
  expect(await sizesIn(store)).toEqual([1]);
  await record(store, 'account-1', 'b');
  await until(async () => (await sizesIn(store)).length === 2);
  expect(await sizesIn(store)).toEqual([1, 3]); // with the seal before
  await stop();
});

test.each(['before', 'after'])(
  'an append that fails %s it is done leaves one seal for each size',
  async (when) => {
    const store = opened();
    await record(store, 'account-1', 'a', 'b');
    let failures = 2;
    const failing: EventStore = {
      ...store,
      async append(appends) {
        if (when === 'after') await store.append(appends);
        if (failures-- > 0) throw new FuelError('STORE_UNAVAILABLE', 'gone');
        return when === 'after' ? store.append(appends) : await store.append(appends);
      },
    };
    const stop = run(failing, { withinMs: 0 });
    await until(async () => (await lastSeal(store)) !== undefined && failures <= (when === 'after' ? 1 : 0));
    await stop();
    expect(await sizesIn(store)).toEqual([2]);
    expect(await verifyLog({ store, key })).toMatchObject({ fault: undefined, seals: 1 });
  },
);

test('two sealers that both hold the lease seal no size twice, and every seal holds', async () => {
  const store = opened();
  const stops = [run(store, { withinMs: 0 }), run(store, { withinMs: 0 })];
  for (let at = 0; at < 20; at++) {
    await record(store, `account-${at}`, 'a');
    await sleep(10);
  }
  await until(async () => ((await lastSeal(store))?.size ?? 0) >= 20);
  for (const stop of stops) await stop();
  const sizes = await sizesIn(store);
  expect(new Set(sizes).size).toBe(sizes.length);
  expect(await verifyLog({ store, key })).toMatchObject({ fault: undefined, seals: sizes.length });
});

test('a sealer that ended continues after the newest seal, also where its last event was erased', async () => {
  const store = opened();
  await record(store, 'account-1', 'a');
  await seal(store);
  await record(store, 'account-2', 'b');
  await seal(store);
  await store.erase('account-2'); // by hand, so nothing names it
  await record(store, 'account-3', 'c');
  await seal(store);
  expect(await verifyLog({ store, key })).toMatchObject({ fault: { kind: 'missing', place: 'account-2@0' } });
});
