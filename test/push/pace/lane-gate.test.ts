import { describe, expect, test } from 'vitest';
import { LaneGate } from '../../../src/push/pace/lane-gate.ts';

const ANY = Infinity;
const RATE = { isRate: true };

/** Starts whatever is allowed, each millisecond; how many in each second. */
function startedBySecond(gate: LaneGate, seconds: number, { perSecond = ANY, fromMs = 0 } = {}): number[] {
  const started = Array.from({ length: seconds }, () => 0);
  for (let ms = 0; ms < seconds * 1000; ms++) {
    const now = { perSecond, nowMs: fromMs + ms };
    for (let room = Math.min(gate.room(0, now), 1_000); room > 0; room--) {
      gate.started(now);
      gate.accepted();
      const second = Math.floor(ms / 1000);
      started[second] = (started[second] ?? 0) + 1;
    }
  }
  return started;
}

describe('a webhook that was enabled', () => {
  test('starts with ten deliveries a second, twice as many each second', () => {
    const gate = new LaneGate();
    gate.enabled(0);
    for (const [second, count] of startedBySecond(gate, 6).entries())
      expect(Math.abs(count - 10 * 2 ** second)).toBeLessThanOrEqual(2);
  });

  test('has no bound after ten seconds', () => {
    const gate = new LaneGate();
    gate.enabled(0);
    expect(gate.room(0, { perSecond: ANY, nowMs: 10_000 })).toBe(Infinity);
  });

  test('saves up no rate that it does not use', () => {
    const gate = new LaneGate();
    gate.enabled(0);
    expect(gate.room(0, { perSecond: ANY, nowMs: 5_000 })).toBeLessThanOrEqual(8);
  });
});

test('without any bound there is always room', () => {
  const gate = new LaneGate();
  gate.started({ perSecond: ANY, nowMs: 0 });
  expect(gate.room(500, { perSecond: ANY, nowMs: 0 })).toBe(Infinity);
  expect(gate.nextAtMs(ANY, 0)).toBeLessThanOrEqual(0);
});

test('the operator’s rate bounds every second', () => {
  for (const perSecond of [1, 7, 50, 200]) {
    for (const count of startedBySecond(new LaneGate(), 5, { perSecond })) {
      expect(count).toBeLessThanOrEqual(perSecond + 1 + perSecond / 50);
      expect(count).toBeGreaterThanOrEqual(perSecond - 1);
    }
  }
});

test('the moment at which the next one may start is known', () => {
  const gate = new LaneGate();
  gate.started({ perSecond: 4, nowMs: 1_000 });
  expect(gate.room(0, { perSecond: 4, nowMs: 1_100 })).toBe(0);
  const nextMs = gate.nextAtMs(4, 1_100);
  expect(gate.room(0, { perSecond: 4, nowMs: nextMs - 1 })).toBe(0);
  expect(gate.room(0, { perSecond: 4, nowMs: nextMs })).toBe(1);
});

describe('a receiver that asks to wait', () => {
  test('gets nothing until then, and then one first', () => {
    const gate = new LaneGate();
    gate.started({ perSecond: ANY, nowMs: 0 });
    gate.refused(30_000, { startedAtMs: 0, nowMs: 10, ...RATE });
    expect(gate.room(0, { perSecond: ANY, nowMs: 30_009 })).toBe(0);
    expect(gate.nextAtMs(ANY, 10)).toBe(30_010);
    expect(gate.room(0, { perSecond: ANY, nowMs: 30_010 })).toBe(1);
    gate.started({ perSecond: ANY, nowMs: 30_010 });
    expect(gate.room(1, { perSecond: ANY, nowMs: 30_011 })).toBe(0);
    gate.accepted();
    expect(gate.room(0, { perSecond: ANY, nowMs: 30_012 })).toBeGreaterThan(1);
  });

  test('that asks twice gets nothing until the later of both', () => {
    const gate = new LaneGate();
    gate.refused(30_000, { startedAtMs: 0, nowMs: 10, ...RATE });
    gate.refused(2_000, { startedAtMs: 0, nowMs: 11, ...RATE });
    expect(gate.nextAtMs(ANY, 11)).toBe(30_010);
  });

  test('gets nine tenths of the rate that it took, which grows as it takes more, for five minutes', () => {
    const gate = new LaneGate();
    for (let nowMs = 0; nowMs < 61; nowMs++) gate.started({ perSecond: ANY, nowMs });
    gate.refused(59_940, { startedAtMs: 60, nowMs: 60, ...RATE }); // the 61st of a minute
    const taken = startedBySecond(gate, 300, { fromMs: 60_000 });
    const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count);
    expect(sumOf(taken)).toBeGreaterThan(0.9 * 300);
    expect(sumOf(taken)).toBeLessThan(0.96 * 300);
    expect(gate.room(0, { perSecond: ANY, nowMs: 360_001 })).toBe(Infinity);
  });

  test('that refuses several that were under way together has taken none of them', () => {
    const gate = new LaneGate();
    for (let nowMs = 0; nowMs < 12; nowMs++) gate.started({ perSecond: ANY, nowMs });
    for (const startedAtMs of [10, 11]) gate.refused(1_000, { startedAtMs, nowMs: 15, ...RATE });
    gate.started({ perSecond: ANY, nowMs: 1_015 });
    gate.accepted();
    const perSecond = (startedBySecond(gate, 1, { fromMs: 1_015 })[0] ?? 0) + 1;
    expect(perSecond).toBeGreaterThan(500); // ten in 15 ms, since the second that it asks for may come from rounding
  });

  test('gets twice the rate no sooner than after a minute', () => {
    const gate = new LaneGate();
    for (let nowMs = 0; nowMs < 101; nowMs++) gate.started({ perSecond: ANY, nowMs });
    gate.refused(1_000, { startedAtMs: 100, nowMs: 1_000, ...RATE });
    const taken = startedBySecond(gate, 60, { fromMs: 2_000 });
    expect(taken[0]).toBeCloseTo(90, -1);
    expect(taken[59]).toBeCloseTo(180, -1);
  });

  test('that refuses again and again gets no lower a rate by that: it says how long to wait', () => {
    const gate = new LaneGate();
    for (let nowMs = 0; nowMs < 11; nowMs++) gate.started({ perSecond: ANY, nowMs });
    gate.refused(1_000, { startedAtMs: 10, nowMs: 10, ...RATE });
    let nowMs = 1_010;
    for (let refusals = 0; refusals < 20; refusals++) {
      gate.started({ perSecond: ANY, nowMs });
      gate.refused(1_000, { startedAtMs: nowMs, nowMs: nowMs + 2, ...RATE });
      nowMs += 1_002;
    }
    gate.started({ perSecond: ANY, nowMs });
    gate.accepted();
    expect(gate.nextAtMs(ANY, nowMs) - nowMs).toBeLessThan(120);
  });

  test('twice is judged by all that it took, not by the quick start alone', () => {
    const gate = new LaneGate();
    for (let nowMs = 0; nowMs < 11; nowMs++) gate.started({ perSecond: ANY, nowMs });
    gate.refused(1_000, { startedAtMs: 10, nowMs: 100, ...RATE }); // ten in 100 ms
    for (let nowMs = 1_100; nowMs <= 2_000; nowMs += 90) gate.started({ perSecond: ANY, nowMs });
    gate.accepted();
    gate.refused(1_000, { startedAtMs: 2_000, nowMs: 2_000, ...RATE });
    const [first = 0] = startedBySecond(gate, 1, { fromMs: 3_000 });
    expect(first).toBeGreaterThanOrEqual(8);
    expect(first).toBeLessThanOrEqual(11); // twenty in two seconds
  });

  test('that refuses without asking to wait gets nine tenths of the rate that it took until then', () => {
    for (const refusedAtMs of [50, 100, 999, 1_000, 5_000]) {
      const gate = new LaneGate();
      for (let n = 0; n < 11; n++) gate.started({ perSecond: ANY, nowMs: (n * refusedAtMs) / 11 });
      gate.refused(0, { startedAtMs: refusedAtMs / 2, nowMs: refusedAtMs, ...RATE });
      const [first = 0] = startedBySecond(gate, 1, { fromMs: refusedAtMs });
      expect(first / (0.9 * 10 * (1_000 / refusedAtMs))).toBeGreaterThan(0.9);
      expect((first - 2) / (0.9 * 10 * (1_000 / refusedAtMs))).toBeLessThan(1.1);
    }
  });

  test('that refuses first without and then with a time to wait keeps the rate that it took', () => {
    const gate = new LaneGate();
    for (let nowMs = 0; nowMs < 12; nowMs++) gate.started({ perSecond: ANY, nowMs });
    gate.refused(0, { startedAtMs: 9, nowMs: 12, ...RATE });
    gate.started({ perSecond: ANY, nowMs: 12 });
    gate.refused(300_000, { startedAtMs: 12, nowMs: 14, ...RATE });
    gate.refused(0, { startedAtMs: 10, nowMs: 15, ...RATE }); // it was under way together with the others
    const [first] = startedBySecond(gate, 1, { fromMs: 300_014 });
    expect(first).toBeGreaterThan(500);
  });

  test('because of how many were under way keeps its rate', () => {
    const gate = new LaneGate();
    for (let nowMs = 0; nowMs < 11; nowMs++) gate.started({ perSecond: ANY, nowMs });
    gate.refused(1_000, { startedAtMs: 10, nowMs: 10, isRate: false });
    gate.started({ perSecond: ANY, nowMs: 1_010 });
    gate.accepted();
    expect(gate.room(0, { perSecond: ANY, nowMs: 1_011 })).toBe(Infinity);
  });

  test('after a quiet time is not held to what it took before', () => {
    const gate = new LaneGate();
    gate.started({ perSecond: ANY, nowMs: 0 });
    for (let nowMs = 60_000; nowMs < 60_011; nowMs++) gate.started({ perSecond: ANY, nowMs });
    gate.refused(1_000, { startedAtMs: 60_010, nowMs: 60_010, ...RATE });
    const [first] = startedBySecond(gate, 2, { fromMs: 61_010 });
    expect(first).toBeGreaterThanOrEqual(8);
  });
});
