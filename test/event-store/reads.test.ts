import { expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { readToEnd, timeForAges } from '../../src/event-store/reads.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { record } from '../support/event-store/store-events.ts';
import { replacing } from '../support/interposed.ts';

test('a read to the end of a log that cannot be reached rejects, and does not wait as a subscription would', async () => {
  const { store } = openPushStores();
  const unavailable = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'no server answers'));
  const away = replacing(store, { head: unavailable });
  const read = Array.fromAsync(readToEnd(away, { prefixes: [], after: 0 }));
  await expect(read).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

const HOUR_MS = 3_600_000;

test('ages are judged by the clock while events arrive, also after the service was stopped for longer than a day', async () => {
  const { store, clock } = openPushStores();
  await record(store, 'account-1', 'before');
  clock.advance(26 * HOUR_MS);
  expect(await timeForAges(store, clock)).toBe(clock.now() - 2 * HOUR_MS);
  await record(store, 'account-1', 'after');
  for (let hour = 0; hour < 24; hour++) {
    clock.advance(HOUR_MS);
    expect(await timeForAges(store, clock)).toBe(clock.now());
  }
});

test('a clock that is far ahead makes nothing older than a day after the newest event', async () => {
  const { store, clock } = openPushStores();
  const newestMs = clock.now();
  await record(store, 'account-1', 'newest');
  clock.advance(100 * 24 * HOUR_MS);
  expect(await timeForAges(store, clock)).toBe(newestMs + 24 * HOUR_MS);
});

test('ages in a log without events are judged by the clock', async () => {
  const { store, clock } = openPushStores();
  expect(await timeForAges(store, clock)).toBe(clock.now());
});
