import { expect, test } from 'vitest';
import { retryDelayMs } from '../../../src/push/dispatch/retry-schedule.ts';

const delaysMs = [30_000, 150_000];
const after = (id: string, cycle: number, attemptNumber: number) =>
  retryDelayMs(delaysMs, { id, cycle, attemptNumber });
const ids = Array.from({ length: 10_000 }, (_, index) => String(index));

test('attempts 2 and 3 follow after the configured delays, each spread evenly over a tenth', () => {
  for (const [attemptNumber, delayMs] of [
    [1, 30_000],
    [2, 150_000],
  ] as const) {
    const tenths = new Array<number>(10).fill(0);
    for (const id of ids) {
      const spread = ((after(id, 1, attemptNumber) ?? 0) / delayMs - 0.9) / 0.2;
      expect(spread).toBeGreaterThanOrEqual(-1e-9);
      expect(spread).toBeLessThanOrEqual(1 + 1e-9);
      const tenth = Math.min(9, Math.max(0, Math.floor(spread * 10)));
      tenths[tenth] = (tenths[tenth] ?? 0) + 1;
    }
    for (const count of tenths) expect(count).toBeGreaterThan(850);
  }
});

test('no attempt follows the last one', () => {
  expect(after('a', 1, 3)).toBeUndefined();
});

test('the wait before an attempt never changes: each process computes it', () => {
  expect([after('a', 1, 1), after('a', 1, 2), after('a', 2, 1)]).toEqual([32_751, 152_494, 31_688]);
});
