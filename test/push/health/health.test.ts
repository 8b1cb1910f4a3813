import { expect, test } from 'vitest';
import { judgeHealth } from '../../../src/push/health/health.ts';

const NOW_MS = Date.UTC(2026, 8, 3);
const DAY_MS = 86_400_000;
const judge = (failedInARow: number, failingForMs: number | null = 0) =>
  judgeHealth(
    {
      failedInARow,
      failingSinceMs: failingForMs === null ? null : NOW_MS - failingForMs,
      lastAnswers: [],
    },
    NOW_MS,
  )?.kind;

test('25 failures in a row call for a warning, 50 for the switch-off', () => {
  expect([0, 1, 24, 25, 49, 50, 51].map((failed) => judge(failed))).toEqual([
    undefined,
    undefined,
    undefined,
    'warn',
    'warn',
    'switch off',
    'switch off',
  ]);
});

test('a day of failure calls for a warning, three days for the switch-off', () => {
  const ages = [DAY_MS - 1, DAY_MS, 3 * DAY_MS - 1, 3 * DAY_MS, 4 * DAY_MS];
  expect(ages.map((age) => judge(2, age))).toEqual([undefined, 'warn', 'warn', 'switch off', 'switch off']);
});

test('a streak whose time a hold has ended is judged by its count alone', () => {
  expect([24, 25, 50].map((failed) => judge(failed, null))).toEqual([undefined, 'warn', 'switch off']);
});

test('the reason of a switch-off names its evidence', () => {
  const since = { failedInARow: 3, failingSinceMs: NOW_MS - 3 * DAY_MS, lastAnswers: [] };
  expect(judgeHealth(since, NOW_MS)).toMatchObject({
    reason: 'every delivery failed since 2026-08-31T00:00:00.000Z',
  });
  expect(judgeHealth({ ...since, failedInARow: 52 }, NOW_MS)).toMatchObject({
    reason: '52 deliveries failed in a row',
  });
});
