import { describe, expect, test } from 'vitest';
import { LaneRate } from '../../../src/push/pace/lane-rate.ts';

const ANY = Infinity;
const RATE = { isRate: true };

/** As many deliveries are accepted, one each millisecond. */
function take(rate: LaneRate, count: number, fromMs = 0): void {
  for (let nowMs = fromMs; nowMs < fromMs + count; nowMs++) {
    rate.started({ perSecond: ANY, nowMs });
    rate.accepted(nowMs);
  }
}

/** Starts whatever is allowed, each millisecond; how many in each second. */
function startedBySecond(rate: LaneRate, seconds: number, { perSecond = ANY, fromMs = 0 } = {}): number[] {
  const started = Array.from({ length: seconds }, () => 0);
  for (let ms = 0; ms < seconds * 1000; ms++) {
    const now = { perSecond, nowMs: fromMs + ms };
    for (let room = Math.min(rate.room(0, now), 1_000); room > 0; room--) {
      rate.started(now);
      rate.accepted(now.nowMs);
      const second = Math.floor(ms / 1000);
      started[second] = (started[second] ?? 0) + 1;
    }
  }
  return started;
}

describe('a webhook that was enabled', () => {
  test('starts with ten deliveries a second, twice as many each second', () => {
    const rate = new LaneRate();
    rate.enabled(0);
    for (const [second, count] of startedBySecond(rate, 6).entries())
      expect(Math.abs(count - 10 * 2 ** second)).toBeLessThanOrEqual(2);
  });

  test('has no bound after ten seconds', () => {
    const rate = new LaneRate();
    rate.enabled(0);
    expect(rate.room(0, { perSecond: ANY, nowMs: 10_000 })).toBe(Infinity);
  });

  test('saves up no rate that it does not use', () => {
    const rate = new LaneRate();
    rate.enabled(0);
    expect(rate.room(0, { perSecond: ANY, nowMs: 5_000 })).toBeLessThanOrEqual(8);
  });
});

test('without any bound there is always room', () => {
  const rate = new LaneRate();
  rate.started({ perSecond: ANY, nowMs: 0 });
  expect(rate.room(500, { perSecond: ANY, nowMs: 0 })).toBe(Infinity);
  expect(rate.nextAtMs(ANY, 0)).toBeLessThanOrEqual(0);
});

test('the operator’s rate bounds every second', () => {
  for (const perSecond of [1, 7, 50, 200]) {
    for (const count of startedBySecond(new LaneRate(), 5, { perSecond })) {
      expect(count).toBeLessThanOrEqual(perSecond + 1 + perSecond / 50);
      expect(count).toBeGreaterThanOrEqual(perSecond - 1);
    }
  }
});

test('the moment at which the next one may start is known', () => {
  const rate = new LaneRate();
  rate.started({ perSecond: 4, nowMs: 1_000 });
  expect(rate.room(0, { perSecond: 4, nowMs: 1_100 })).toBe(0);
  const nextMs = rate.nextAtMs(4, 1_100);
  expect(rate.room(0, { perSecond: 4, nowMs: nextMs - 1 })).toBe(0);
  expect(rate.room(0, { perSecond: 4, nowMs: nextMs })).toBe(1);
});

describe('a receiver that asks to wait', () => {
  test('gets nothing until then, and then one first', () => {
    const rate = new LaneRate();
    rate.started({ perSecond: ANY, nowMs: 0 });
    rate.refused(30_000, { startedAtMs: 0, nowMs: 10, ...RATE });
    expect(rate.room(0, { perSecond: ANY, nowMs: 30_009 })).toBe(0);
    expect(rate.nextAtMs(ANY, 10)).toBe(30_010);
    expect(rate.room(0, { perSecond: ANY, nowMs: 30_010 })).toBe(1);
    rate.started({ perSecond: ANY, nowMs: 30_010 });
    expect(rate.room(1, { perSecond: ANY, nowMs: 30_011 })).toBe(0);
    rate.accepted(30_012);
    expect(rate.room(0, { perSecond: ANY, nowMs: 30_012 })).toBeGreaterThan(1);
  });

  test('that asks twice gets nothing until the later of both', () => {
    const rate = new LaneRate();
    rate.refused(30_000, { startedAtMs: 0, nowMs: 10, ...RATE });
    rate.refused(2_000, { startedAtMs: 0, nowMs: 11, ...RATE });
    expect(rate.nextAtMs(ANY, 11)).toBe(30_010);
  });

  test('gets four fifths of the rate that it took, which grows as it takes more', () => {
    const rate = new LaneRate();
    take(rate, 60);
    rate.refused(59_940, { startedAtMs: 60, nowMs: 60, ...RATE }); // the 61st of a minute
    const taken = startedBySecond(rate, 40, { fromMs: 60_000 });
    const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count);
    expect(sumOf(taken.slice(0, 10))).toBeGreaterThanOrEqual(0.8 * 10);
    expect(sumOf(taken.slice(0, 10))).toBeLessThanOrEqual(2 * 0.8 * 10);
    expect(sumOf(taken.slice(30))).toBeGreaterThan(4 * 0.8 * 10);
  });

  test('twice gets a rate that grows slowly from then on', () => {
    const rate = new LaneRate();
    take(rate, 100);
    rate.refused(900, { startedAtMs: 100, nowMs: 100, ...RATE }); // a hundred in a second
    startedBySecond(rate, 2, { fromMs: 1_000 });
    rate.refused(1_000, { startedAtMs: 3_000, nowMs: 3_000, ...RATE });
    const taken = startedBySecond(rate, 60, { fromMs: 4_000 });
    expect(taken[59]).toBeLessThan(1.2 * (taken[0] ?? 0));
    expect(taken[59]).toBeGreaterThan(taken[0] ?? 0);
  });

  test('that refuses several that were under way together gets no lower a rate for each', () => {
    const rate = new LaneRate();
    take(rate, 10);
    for (const startedAtMs of [10, 11, 12]) rate.refused(1_000, { startedAtMs, nowMs: 15, ...RATE });
    rate.started({ perSecond: ANY, nowMs: 1_015 });
    rate.accepted(1_016);
    expect(rate.nextAtMs(ANY, 1_016) - 1_015).toBeGreaterThan(1_015 / (0.8 * 10) - 21);
    expect(rate.nextAtMs(ANY, 1_016) - 1_015).toBeLessThan(1_015 / (0.8 * 10));
  });

  test('that refuses again and again keeps four fifths of what it has accepted on average', () => {
    const rate = new LaneRate();
    let [nowMs, accepted] = [0, 0];
    for (let refusals = 0; refusals < 40; refusals++) {
      for (let n = 0; n < 20; n++) {
        nowMs = Math.max(nowMs + 1, Math.ceil(rate.nextAtMs(ANY, nowMs)));
        rate.started({ perSecond: ANY, nowMs });
        rate.accepted(nowMs);
        accepted += 1;
      }
      rate.refused(0, { startedAtMs: nowMs, nowMs, ...RATE });
    }
    rate.started({ perSecond: ANY, nowMs });
    rate.accepted(nowMs);
    expect(rate.nextAtMs(ANY, nowMs) - nowMs).toBeLessThanOrEqual((2 * 1.25 * nowMs) / accepted);
  });

  test('that refuses each of a few deliveries for hours gets no lower a rate by that', () => {
    const rate = new LaneRate();
    take(rate, 100);
    rate.refused(1_000, { startedAtMs: 100, nowMs: 100, ...RATE });
    let nowMs = 2_000;
    for (let refusals = 0; refusals < 100; refusals++) {
      rate.started({ perSecond: ANY, nowMs });
      rate.refused(1_000, { startedAtMs: nowMs, nowMs, ...RATE });
      nowMs += 60_000;
    }
    rate.started({ perSecond: ANY, nowMs });
    rate.accepted(nowMs);
    expect(rate.nextAtMs(ANY, nowMs) - nowMs).toBeLessThan(100);
  });

  test('whatever it refuses, gets one in five minutes, as no receiver can ask to wait longer', () => {
    const rate = new LaneRate();
    let nowMs = 0;
    for (let refusals = 0; refusals < 100; refusals++) {
      rate.started({ perSecond: ANY, nowMs });
      rate.accepted(nowMs);
      rate.refused(300_000, { startedAtMs: nowMs, nowMs, ...RATE });
      nowMs += 300_000;
    }
    rate.started({ perSecond: ANY, nowMs });
    expect(rate.nextAtMs(ANY, nowMs) - nowMs).toBeLessThanOrEqual(300_000);
  });

  test('because of how many were under way keeps its rate', () => {
    const rate = new LaneRate();
    for (let nowMs = 0; nowMs < 11; nowMs++) rate.started({ perSecond: ANY, nowMs });
    rate.refused(1_000, { startedAtMs: 10, nowMs: 10, isRate: false });
    rate.started({ perSecond: ANY, nowMs: 1_010 });
    rate.accepted(1_010);
    expect(rate.room(0, { perSecond: ANY, nowMs: 1_011 })).toBe(Infinity);
  });

  test('after a quiet time is not held to what it took before', () => {
    const rate = new LaneRate();
    take(rate, 1);
    take(rate, 10, 60_000);
    rate.refused(1_000, { startedAtMs: 60_010, nowMs: 60_010, ...RATE });
    const [first] = startedBySecond(rate, 2, { fromMs: 61_010 });
    expect(first).toBeGreaterThanOrEqual(8);
  });
});
