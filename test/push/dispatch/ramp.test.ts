import { expect, test } from 'vitest';
import { Ramps } from '../../../src/push/dispatch/lane-slots.ts';

/** Takes whatever is allowed, each millisecond. */
function takenBy(seconds: number): number[] {
  const ramps = new Ramps();
  ramps.start('a', 0);
  const taken = Array.from({ length: seconds }, () => 0);
  for (let nowMs = 0; nowMs < seconds * 1000; nowMs++) {
    for (let free = ramps.capacity('a', nowMs); free > 0; free--) {
      ramps.consume('a', nowMs);
      const second = Math.floor(nowMs / 1000);
      taken[second] = (taken[second] ?? 0) + 1;
    }
  }
  return taken;
}

test('the rate after an enable is 10 a second at first and doubles every second', () => {
  const expected = [10, 20, 40, 80, 160, 320];
  takenBy(6).forEach((count, second) => {
    expect(Math.abs(count - (expected[second] ?? 0))).toBeLessThanOrEqual(2);
  });
});

test('a rate that was not used is not saved up', () => {
  const ramps = new Ramps();
  ramps.start('a', 0);
  expect(ramps.capacity('a', 5_000)).toBe(33); // a tenth of the 320 of that second, and the one that is due
});

test('a rate that was not used is not saved up by the deliveries that start either', () => {
  const ramps = new Ramps();
  ramps.start('a', 0);
  for (let taken = 0; taken < 33; taken++) ramps.consume('a', 5_000);
  expect(ramps.capacity('a', 5_000)).toBe(0);
  expect(ramps.capacity('a', 5_010)).toBeLessThanOrEqual(4);
});

test('a ramp whose start is in the future, by another machine’s clock, starts with ten a second', () => {
  const ramps = new Ramps();
  ramps.start('a', 5_000);
  expect(ramps.capacity('a', 0)).toBe(0);
  expect(ramps.nextAtMs(0)).toBe(5_000);
  ramps.consume('a', 0);
  expect(ramps.nextAtMs(0)).toBe(5_100);
});

test('a ramp is over after ten seconds, and a webhook without one has no limit', () => {
  const ramps = new Ramps();
  ramps.start('a', 0);
  ramps.consume('a', 0);
  expect(ramps.capacity('a', 0)).toBe(0);
  expect(ramps.capacity('b', 0)).toBe(Infinity);
  expect(ramps.capacity('a', 10_000)).toBe(Infinity);
  expect(ramps.nextAtMs(10_000)).toBeUndefined();
});

test('a ramp that is over has no next moment, whoever asks first', () => {
  const ramps = new Ramps();
  ramps.start('a', 0);
  ramps.consume('a', 9_999);
  expect(ramps.nextAtMs(10_000)).toBeUndefined();
});

test('a ramp lasts ten seconds by the clock of our days', () => {
  const nowMs = Date.UTC(2026, 8, 3);
  const ramps = new Ramps();
  ramps.start('a', nowMs);
  expect(ramps.capacity('a', nowMs)).toBe(1);
  expect(ramps.capacity('a', nowMs + 9_999)).toBeLessThan(Infinity);
  expect(ramps.capacity('a', nowMs + 10_000)).toBe(Infinity);
});

test('the next time at which a waiting webhook may continue is known', () => {
  const ramps = new Ramps();
  expect(ramps.nextAtMs(0)).toBeUndefined();
  ramps.start('a', 0);
  ramps.consume('a', 0);
  expect(ramps.nextAtMs(0)).toBe(100);
  expect(ramps.capacity('a', 99)).toBe(0);
  expect(ramps.capacity('a', 100)).toBe(1);
  expect(ramps.nextAtMs(100)).toBeUndefined();
});

test('of several waiting webhooks the next to continue counts, in whole milliseconds, and none that need not wait', () => {
  const ramps = new Ramps();
  ramps.start('late', 0);
  ramps.start('early', -3_950);
  ramps.start('free', -100);
  ramps.consume('late', 0);
  ramps.consume('early', 0);
  for (let taken = 0; taken < 9; taken++) ramps.consume('early', 0);
  // "early" takes one each 12.5 ms, and had saved a tenth of a second
  expect(ramps.capacity('early', 0)).toBe(0);
  expect(ramps.nextAtMs(0)).toBe(25);
  expect(ramps.capacity('early', 25)).toBe(1);
  ramps.consume('early', 25);
  expect(ramps.nextAtMs(25)).toBe(38);
  expect(ramps.capacity('early', 37)).toBe(0);
  expect(ramps.nextAtMs(38)).toBe(100);
});

test('a ramp that is over is kept no longer: a clock that steps back does not bring it back', () => {
  for (const end of ['capacity', 'consume', 'nextAtMs'] as const) {
    const ramps = new Ramps();
    ramps.start('a', 0);
    ramps.consume('a', 0);
    if (end === 'nextAtMs') ramps.nextAtMs(10_000);
    else ramps[end]('a', 10_000);
    expect(ramps.capacity('a', 0)).toBe(Infinity);
  }
});
