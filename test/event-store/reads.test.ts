import { expect, test } from 'vitest';
import { FuelError } from '../../src/base/errors.ts';
import { readToEnd, timeForAges } from '../../src/event-store/reads.ts';
import { openPushStores } from '../support/deliveries/push-stores.ts';
import { record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { replacing } from '../support/interposed.ts';

test('a read to the end of a log that cannot be reached rejects, and does not wait as a subscription would', async () => {
  const { store } = openPushStores();
  const unavailable = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'no server answers'));
  const away = replacing(store, { head: unavailable });
  const read = Array.fromAsync(readToEnd(away, { prefixes: [], after: 0 }));
  await expect(read).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

const HOUR_MS = 3_600_000;

test('ages are judged by the clock while events arrive, and three hours late after the service was stopped for 26', async () => {
  const { store, clock } = openPushStores();
  await record(store, 'account-1', 'before');
  clock.advance(26 * HOUR_MS);
  expect(await timeForAges(store, clock, clock)).toBe(clock.now() - 3 * HOUR_MS);
  for (let hour = 0; hour < 60; hour++) {
    clock.advance(HOUR_MS);
    await record(store, 'account-1', 'after');
    expect(await timeForAges(store, clock, clock)).toBeGreaterThanOrEqual(clock.now() - 3 * HOUR_MS);
  }
});

test('a log in which nothing is recorded for days does not stop the time by which ages are judged', async () => {
  const { store, clock } = openPushStores();
  await record(store, 'account-1', 'only');
  for (let hour = 0; hour < 100; hour++) {
    expect(await timeForAges(store, clock, clock)).toBe(clock.now());
    clock.advance(HOUR_MS);
  }
});

test('a clock that is far ahead makes nothing older than 23 hours after the newest event', async () => {
  const { store, clock } = openPushStores();
  const newestMs = clock.now();
  await record(store, 'account-1', 'newest');
  clock.advance(100 * 24 * HOUR_MS);
  expect(await timeForAges(store, clock)).toBe(newestMs + 23 * HOUR_MS);
});

test('what a clock that is far ahead records is not believed, by who knew the time before', async () => {
  const { store, clock } = openPushStores();
  const steady = new FakeClock();
  await record(store, 'account-1', 'before');
  const startMs = await timeForAges(store, clock, steady);
  clock.advance(100 * 24 * HOUR_MS);
  await record(store, 'account-1', 'in the future');
  steady.advance(HOUR_MS);
  expect(await timeForAges(store, clock, steady)).toBe(startMs + 24 * HOUR_MS);
  clock.advance(-100 * 24 * HOUR_MS + HOUR_MS);
  expect(await timeForAges(store, clock, steady)).toBe(clock.now());
});

test('ages in a log without events are judged by the clock', async () => {
  const { store, clock } = openPushStores();
  expect(await timeForAges(store, clock)).toBe(clock.now());
});
