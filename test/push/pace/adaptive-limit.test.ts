import { describe, expect, test } from 'vitest';
import { AdaptiveLimit } from '../../../src/push/pace/adaptive-limit.ts';

const MAX = 64;

/** A limit whose requests all start together, as many as it allows, and are answered by `timeMs` of their number. */
class Rounds {
  readonly limit = new AdaptiveLimit(MAX);
  nowMs = 0;

  /** Returns how many were under way. */
  round(timeMs: (underWay: number) => number): number {
    const count = this.limit.room(0, this.nowMs);
    const startedAtMs = this.nowMs;
    for (let underWay = 1; underWay <= count; underWay++) this.limit.started(underWay, startedAtMs);
    this.nowMs += Math.max(100, timeMs(count));
    for (let underWay = 1; underWay <= count; underWay++)
      this.limit.answered(timeMs(count), { startedAtMs, nowMs: this.nowMs });
    return count;
  }

  rounds(count: number, timeMs: (underWay: number) => number): number[] {
    return Array.from({ length: count }, () => this.round(timeMs));
  }
}

describe('the limit', () => {
  test('starts with one and doubles while answers come as fast as at best, up to its maximum', () => {
    expect(new Rounds().rounds(8, () => 10)).toEqual([1, 2, 4, 8, 16, 32, 64, 64]);
  });

  test('grows as at first once a loss is forgiven, from where it is', () => {
    const rounds = new Rounds();
    rounds.rounds(4, () => 10);
    const [startedAtMs, nowMs] = [rounds.nowMs, rounds.nowMs];
    rounds.limit.lost({ startedAtMs, nowMs });
    rounds.limit.forgive();
    expect(rounds.rounds(3, () => 10)).toEqual([8, 16, 32]);
  });

  test('tries one more again if that one said nothing', () => {
    const { limit, nowMs } = new Rounds();
    limit.started(1, nowMs);
    limit.answered(300, { startedAtMs: nowMs, nowMs: nowMs + 300 });
    limit.started(1, nowMs + 300);
    expect(limit.room(1, nowMs + 500)).toBe(1);
    limit.started(2, nowMs + 500);
    expect(limit.room(1, nowMs + 800)).toBe(0);
    limit.abandoned({ startedAtMs: nowMs + 500, nowMs: nowMs + 800 });
    expect(limit.room(1, nowMs + 800)).toBe(1);
  });

  test('stays where answers come later than at best, and shrinks before they are too late', () => {
    const rounds = new Rounds();
    rounds.rounds(5, () => 10);
    expect(rounds.round(() => 90)).toBe(32);
    expect(rounds.round(() => 90)).toBe(32);
    rounds.round(() => 250);
    expect(rounds.round(() => 250)).toBeLessThan(20);
  });

  test('that shrank only because answers were slow for a moment doubles again after a short rest', () => {
    const rounds = new Rounds();
    rounds.rounds(7, () => 10);
    for (let slow = 0; slow < 5; slow++) {
      while (rounds.round(() => 300) > 2);
      rounds.nowMs += 250;
      expect(Math.max(...rounds.rounds(8, () => 10))).toBe(MAX);
    }
  });

  test('never makes a receiver late that works on one after the other', () => {
    for (const workMs of [20, 50, 100, 190, 350]) {
      const counts = new Rounds().rounds(200, (underWay) => workMs * underWay);
      expect(Math.max(...counts) * workMs).toBeLessThanOrEqual(400);
    }
  });

  test('goes by the time of a request that is alone, also where that gets longer', () => {
    const limit = new AdaptiveLimit(1);
    for (let n = 0; n < 20; n++) {
      const [startedAtMs, timeMs] = [n * 1_000, n < 5 ? 10 : 300];
      limit.started(1, startedAtMs);
      limit.answered(timeMs, { startedAtMs, nowMs: startedAtMs + timeMs });
    }
    expect(limit.bestMs).toBeGreaterThan(250);
  });

  test('grows only when all of it is used', () => {
    const { limit } = new Rounds();
    for (let nowMs = 0; nowMs < 10_000; nowMs += 200) {
      limit.started(1, nowMs);
      limit.answered(10, { startedAtMs: nowMs, nowMs: nowMs + 10 });
    }
    expect(limit.room(0, 10_000)).toBe(2); // the first one was full with one
  });

  test('does not grow while this process is late', () => {
    const { limit } = new Rounds();
    limit.started(1, 0);
    limit.answered(10, { startedAtMs: 0, nowMs: 10 }, true);
    expect(limit.room(0, 10)).toBe(1);
  });
});

describe('a loss', () => {
  test('halves the limit once for all that were under way together, and lets one go first', () => {
    const rounds = new Rounds();
    rounds.rounds(5, () => 10);
    const { limit } = rounds;
    const startedAtMs = rounds.nowMs;
    for (let underWay = 1; underWay <= 32; underWay++) limit.started(underWay, startedAtMs);
    for (let lost = 0; lost < 8; lost++) limit.lost({ startedAtMs, nowMs: startedAtMs + 500 + lost });
    expect(limit.room(0, startedAtMs + 600)).toBe(1);
    limit.started(1, startedAtMs + 600);
    expect(limit.room(1, startedAtMs + 600)).toBe(0);
    limit.answered(10, { startedAtMs: startedAtMs + 600, nowMs: startedAtMs + 610 });
    expect(limit.room(0, startedAtMs + 610)).toBe(16);
  });

  test('is followed by single steps, not by a leap', () => {
    const rounds = new Rounds();
    rounds.rounds(5, () => 10);
    rounds.limit.lost({ startedAtMs: rounds.nowMs, nowMs: rounds.nowMs + 500 });
    rounds.nowMs += 1_000;
    const counts = rounds.rounds(6, () => 10);
    expect(counts[0]).toBe(1);
    expect(counts.slice(1)).toEqual([16, 17, 18, 19, 20]);
  });

  test('never takes the last one away', () => {
    const { limit } = new Rounds();
    for (let nowMs = 0; nowMs < 20_000; nowMs += 500) {
      expect(limit.room(0, nowMs)).toBe(1);
      limit.started(1, nowMs);
      limit.lost({ startedAtMs: nowMs, nowMs: nowMs + 500 });
    }
  });
});

test('a limit that was refused is not reached again for five minutes', () => {
  const rounds = new Rounds();
  rounds.rounds(4, () => 10);
  rounds.limit.refused({ startedAtMs: rounds.nowMs, nowMs: rounds.nowMs + 5 });
  expect(Math.max(...rounds.rounds(200, () => 10))).toBe(12);
  rounds.nowMs += 300_000;
  expect(Math.max(...rounds.rounds(20, () => 10))).toBeGreaterThan(16);
});

test('after a pause a receiver is judged anew', () => {
  const rounds = new Rounds();
  rounds.rounds(6, () => 10);
  rounds.limit.restart();
  expect(rounds.round(() => 10)).toBe(1);
});

describe('where one more may make answers late', () => {
  test('one is tried, so late that it would be answered in time by a receiver that works on one after the other', () => {
    const { limit } = new Rounds();
    limit.started(1, 0);
    limit.answered(350, { startedAtMs: 0, nowMs: 350 });
    limit.started(1, 350);
    expect(limit.room(1, 350)).toBe(0);
    expect(limit.nextAtMs).toBe(350 + 300);
    expect(limit.room(1, 650)).toBe(1);
  });

  test('a trial that takes longer is not repeated at once, and two good ones add one', () => {
    for (const [trialMs, most] of [
      [400, 1],
      [352, 2],
    ] as const) {
      const { limit } = new Rounds();
      limit.started(1, 0);
      limit.answered(350, { startedAtMs: 0, nowMs: 350 });
      for (let nowMs = 350; nowMs < 1_800; nowMs += 700) {
        limit.started(1, nowMs);
        if (limit.room(1, nowMs + 300) === 0) continue;
        limit.started(2, nowMs + 300);
        limit.answered(350, { startedAtMs: nowMs, nowMs: nowMs + 350 });
        limit.answered(trialMs, { startedAtMs: nowMs + 300, nowMs: nowMs + 300 + trialMs });
      }
      limit.started(1, 2_500);
      expect(limit.room(1, 2_500 + 150)).toBe(0); // two at once start evenly over the time that each takes
      expect(limit.room(1, 2_500 + 340)).toBe(most - 1);
    }
  });
});
