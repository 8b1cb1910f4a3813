import { describe, expect, it } from 'vitest';
import type { Attempt, AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import {
  answerOf,
  ended,
  extended,
  type FailureStreak,
  healthOf,
  NO_STREAK,
  reset,
  timedFrom,
} from '../../../src/push/queue/failure-streak.ts';
import { SUCCESS, TIMEOUT, UNAVAILABLE } from '../../support/deliveries/deliveries.ts';

function failedAt(atMs: number, cycle = 1, outcome = UNAVAILABLE): Attempt {
  return { cycle, number: 3, startedAtMs: atMs - 250, durationMs: 250, othersUnderWay: 0, outcome };
}

/** A failed delivery for each time. */
function streakOf(...times: readonly number[]): FailureStreak {
  return times.reduce((streak, atMs) => extended(streak, `at ${atMs}`, failedAt(atMs)), NO_STREAK);
}

describe('a failure streak', () => {
  it('counts failed deliveries from the first on, and keeps the last five answers, newest first', () => {
    const streak = extended(streakOf(1_000, 2_000, 3_000, 4_000, 5_000), 'x', failedAt(6_000, 1, TIMEOUT));
    expect(healthOf(streak)).toEqual({
      failedInARow: 6,
      failingSinceMs: 1_000,
      lastAnswers: ['timeout: no answer in 500 ms', '503', '503', '503', '503'],
    });
  });

  it('counts a delivery once in each of its cycles, however often it is added', () => {
    const once = extended(streakOf(1_000), 'x', failedAt(2_000));
    expect(extended(once, 'x', failedAt(9_000))).toBe(once);
    expect(healthOf(extended(once, 'x', failedAt(9_000, 2))).failedInARow).toBe(3);
  });

  it('is over with a success', () => {
    expect(healthOf(ended(streakOf(1_000, 2_000)))).toEqual(healthOf(NO_STREAK));
    expect(ended(NO_STREAK)).toBe(NO_STREAK);
  });

  it('forgets what failed before its webhook was enabled, and nothing since, however late that is said', () => {
    const streak = reset(streakOf(1_000, 2_000, 3_000), 2_000);
    expect(healthOf(streak)).toMatchObject({ failedInARow: 2, failingSinceMs: 2_000 });
    expect(reset(streak, 2_000)).toBe(streak);
    expect(reset(streak, 1_500)).toBe(streak);
    expect(extended(streak, 'late', failedAt(1_999))).toBe(streak);
  });

  it('has no time since its account was without access until the next failure, and keeps its count', () => {
    const held = timedFrom(streakOf(1_000, 2_000), 5_000);
    expect(healthOf(held)).toMatchObject({ failedInARow: 2, failingSinceMs: null });
    expect(healthOf(extended(held, 'x', failedAt(6_000)))).toMatchObject({
      failedInARow: 3,
      failingSinceMs: 6_000,
    });
    expect(timedFrom(held, 4_000)).toBe(held);
  });

  it('keeps a hundred failures, the first among them', () => {
    const streak = streakOf(...Array.from({ length: 150 }, (_, n) => 1_000 + n));
    expect(streak.failures.map(({ at }) => at)).toEqual([
      1_000,
      ...Array.from({ length: 99 }, (_, n) => 1_051 + n),
    ]);
  });

  it('names an answer by its status, and otherwise what went wrong', () => {
    const cut: AttemptOutcome = { ok: false, kind: 'cut', detail: 'closed', answer: SUCCESS.answer };
    const empty: AttemptOutcome = { ok: false, kind: 'status', detail: 'none', answer: null };
    expect([SUCCESS, UNAVAILABLE, TIMEOUT, cut, empty].map(answerOf)).toEqual([
      '204',
      '503',
      'timeout: no answer in 500 ms',
      'cut: closed',
      'status: none',
    ]);
  });
});
