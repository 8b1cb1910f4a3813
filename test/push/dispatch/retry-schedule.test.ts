import fc from 'fast-check';
import { expect, test } from 'vitest';
import { attemptRandom, retryDelayMs } from '../../../src/push/dispatch/retry-schedule.ts';

const delaysMs = [30_000, 150_000];

test('attempts 2 and 3 follow after the configured delays, each spread by a tenth', () => {
  expect(retryDelayMs({ delaysMs, attemptNumber: 2, random: 0.5 })).toBe(30_000);
  expect(retryDelayMs({ delaysMs, attemptNumber: 3, random: 0.5 })).toBe(150_000);
  expect(retryDelayMs({ delaysMs, attemptNumber: 2, random: 0 })).toBe(27_000);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (random) => {
      const delayMs = retryDelayMs({ delaysMs, attemptNumber: 3, random }) ?? 0;
      expect(delayMs).toBeGreaterThanOrEqual(135_000);
      expect(delayMs).toBeLessThanOrEqual(165_000);
    }),
  );
});

test('no attempt follows the last one, and none is scheduled as the first', () => {
  expect(retryDelayMs({ delaysMs, attemptNumber: 4, random: 0.5 })).toBeUndefined();
  expect(retryDelayMs({ delaysMs, attemptNumber: 1, random: 0.5 })).toBeUndefined();
});

test('the spread of an attempt is the same whenever it is asked for, and differs between attempts', () => {
  const of = (id: string, cycle: number, attemptNumber: number) =>
    attemptRandom({ id, cycle, attemptNumber });
  expect(of('a', 1, 2)).toBe(of('a', 1, 2));
  const spreads = [of('a', 1, 2), of('a', 1, 3), of('a', 2, 2), of('b', 1, 2)];
  expect(new Set(spreads).size).toBe(spreads.length);
});

test('spreads fill the range from 0 to below 1 evenly', () => {
  const tenths = new Array<number>(10).fill(0);
  for (let i = 0; i < 10_000; i++) {
    const random = attemptRandom({ id: String(i), cycle: 1, attemptNumber: 2 });
    expect(random).toBeGreaterThanOrEqual(0);
    expect(random).toBeLessThan(1);
    const tenth = Math.floor(random * 10);
    tenths[tenth] = (tenths[tenth] ?? 0) + 1;
  }
  for (const count of tenths) expect(count).toBeGreaterThan(850);
});
