import { describe, expect, test } from 'vitest';
import { type Place, RequestLimit } from '../../../src/push/pace/request-limit.ts';

const MAX = 128;
const range = (count: number) => Array.from({ length: count }, (_, n) => n);

/** A limit whose requests all start together, as many as it allows, and are answered by `timeMs` of their place. */
class Rounds {
  readonly limit = new RequestLimit();
  nowMs = 1_000;

  start(): Place[] {
    return range(this.limit.room(0, this.nowMs)).map(() => this.limit.started(this.nowMs));
  }

  /** Returns how many were under way. */
  round(timeMs: (place: number) => number): number {
    const places = this.start();
    const startedAtMs = this.nowMs;
    for (const [n, place] of places.entries()) {
      this.nowMs = Math.max(this.nowMs, startedAtMs + timeMs(n + 1));
      this.limit.answered(place, timeMs(n + 1), { nowMs: this.nowMs });
    }
    return places.length;
  }

  rounds(count: number, timeMs: (place: number) => number): number[] {
    return range(count).map(() => this.round(timeMs));
  }
}

const serial = (workMs: number) => (place: number) => workMs * place;

describe('the limit', () => {
  test('starts with one and grows while answers take no longer, up to its maximum', () => {
    const counts = new Rounds().rounds(80, () => 10);
    expect(counts[0]).toBe(1);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    expect(counts.at(-1)).toBe(MAX);
  });

  test('grows to half of its maximum within 0.2 s at a fast receiver, and has few under way at first', () => {
    const rounds = new Rounds();
    while (rounds.round(() => 2) < MAX / 2);
    expect(rounds.nowMs).toBeLessThan(1_200);
    const counts = new Rounds().rounds(20, () => 2);
    expect(Math.max(...counts)).toBeLessThan(8); // after 40 ms
  });

  test('never makes a receiver late that works on one after the other, and keeps it busy', () => {
    for (const workMs of [20, 50, 100, 190, 350]) {
      const counts = new Rounds().rounds(100, serial(workMs));
      expect(Math.max(...counts) * workMs).toBeLessThanOrEqual(400);
    }
  });

  test('shrinks as soon as answers get slower, before they are too late', () => {
    const rounds = new Rounds();
    rounds.rounds(60, () => 10);
    const before = rounds.round(() => 10);
    for (const _ of range(3)) rounds.round(() => 350);
    expect(rounds.round(() => 350)).toBeLessThan(before / 2);
  });

  test('goes by the time of a request that is alone, also where that gets longer', () => {
    const { limit } = new Rounds();
    for (const n of range(20)) {
      const [startedAtMs, timeMs] = [n * 1_000, n < 5 ? 10 : 300];
      limit.answered(limit.started(startedAtMs), timeMs, { nowMs: startedAtMs + timeMs });
    }
    expect(limit.bestMs).toBeGreaterThan(250);
  });

  test('does not grow while this process is late', () => {
    const { limit } = new Rounds();
    limit.answered(limit.started(0), 10, { nowMs: 1_000, isLate: true });
    expect(limit.room(0, 1_000)).toBe(1);
  });

  test('starts again from one after a pause', () => {
    const rounds = new Rounds();
    rounds.rounds(60, () => 10);
    rounds.nowMs += 1_000;
    expect(rounds.rounds(2, () => 10)[0]).toBe(1);
  });
});

describe('a loss', () => {
  test('takes its place with it, and never the last one', () => {
    const rounds = new Rounds();
    rounds.rounds(60, () => 10);
    const places = rounds.start();
    for (const place of places.slice(0, 8)) rounds.limit.lost(place, rounds.nowMs + 500);
    for (const place of places.slice(8)) rounds.limit.abandoned(place);
    expect(rounds.limit.room(0, rounds.nowMs + 500)).toBe(MAX - 8);
    for (let nowMs = 5_000; nowMs < 200_000; nowMs += 500) {
      expect(rounds.limit.room(0, nowMs)).toBeGreaterThanOrEqual(1);
      rounds.limit.lost(rounds.limit.started(nowMs), nowMs + 500);
    }
    expect(rounds.limit.room(0, 200_000)).toBe(1);
  });

  test('of a number that the receiver refuses is remembered, and that number grows slowly', () => {
    const rounds = new Rounds();
    rounds.limit.lost(rounds.limit.started(rounds.nowMs), rounds.nowMs, 12);
    expect(Math.max(...rounds.rounds(200, () => 10))).toBe(12);
    rounds.rounds(20_000, () => 10);
    expect(rounds.round(() => 10)).toBeGreaterThan(12);
    expect(rounds.round(() => 10)).toBeLessThan(24); // after less than five minutes
  });
});

describe('a request that a later one has overtaken', () => {
  test('takes no place, and its loss does not count', () => {
    const { limit } = new Rounds();
    const hanging = limit.started(0);
    expect(limit.room(0, 299)).toBe(0);
    const later = limit.started(300); // after this time one that hangs keeps no other waiting
    expect(limit.isOvertaken(hanging)).toBe(false);
    limit.answered(later, 10, { nowMs: 310 });
    expect(limit.isOvertaken(hanging)).toBe(true);
    const before = limit.room(0, 310);
    expect(before).toBeGreaterThan(1);
    limit.lost(hanging, 500);
    expect(limit.room(0, 500)).toBe(before);
  });

  test('does not make others believe that more would fit', () => {
    const { limit } = new Rounds();
    const places = range(8).map(() => limit.started(0));
    const last = places.at(-1);
    if (last !== undefined) limit.answered(last, 50, { nowMs: 1_000 });
    expect(limit.room(0, 1_000)).toBeLessThanOrEqual(3); // one answer in 50 ms, whatever else was under way
  });
});

describe('where one more may make answers late', () => {
  test('it starts so late that a receiver that works on one after the other answers it in time', () => {
    const { limit } = new Rounds();
    limit.answered(limit.started(0), 350, { nowMs: 350 });
    limit.started(350);
    expect(limit.room(0, 350)).toBe(0);
    const { nextAtMs } = limit;
    expect(350 + 2 * 350 - nextAtMs).toBeLessThanOrEqual(450);
    expect(limit.room(0, Math.ceil(nextAtMs))).toBe(1);
    expect(limit.room(0, Math.floor(nextAtMs) - 1)).toBe(0);
  });

  test('answers that took no longer than alone allow more, and answers that did allow none', () => {
    for (const [timeMs, isMore] of [
      [350, true],
      [450, false],
    ] as const) {
      const { limit } = new Rounds();
      limit.answered(limit.started(0), 350, { nowMs: 350 });
      let nowMs = 350;
      for (const _ of range(10)) {
        const one = limit.started(nowMs);
        const two = limit.started(Math.max(nowMs, limit.nextAtMs));
        limit.answered(one, 350, { nowMs: nowMs + 350 });
        nowMs += 600;
        limit.answered(two, timeMs, { nowMs });
      }
      expect(limit.room(0, nowMs) > 1).toBe(isMore);
    }
  });
});
