import { describe, expect, test } from 'vitest';
import type { GroupEvent, RecordedEvent } from '../../../../src/event-store/event-store.ts';
import {
  EventStoreDbHandedEvents,
  type ServerEvent,
} from '../../../../src/event-store/eventstoredb/groups/handed-events.ts';

const TIMEOUT_MS = 1_000;
/** How late the server may notice a passed time-out. */
const SERVER_MS = 2_000;
const MAX_RETRIES = 3;

const eventAt = (position: number) => ({ position }) as RecordedEvent;
const delivery = (retryCount = 0) => ({ retryCount }) as ServerEvent;

/** Two at most are out at a time. */
function opened() {
  const handed = new EventStoreDbHandedEvents(2);
  handed.limits = { ackTimeoutMs: TIMEOUT_MS, maxRetries: MAX_RETRIES };
  const arrive = (position: number, nowMs: number, given = delivery()) =>
    handed.arrive(eventAt(position), given, nowMs);
  /** All that can be handed out: position and count. */
  const out = (nowMs: number): [number, number][] => {
    const found: [number, number][] = [];
    for (let next = handed.next(nowMs); next !== undefined; next = handed.next(nowMs)) {
      found.push([next.event.position, next.retryCount]);
    }
    return found;
  };
  const hold = (position: number, nowMs: number, { delayMs = 0, reason = 'later', most = 10 } = {}) =>
    handed.hold(groupEvent(position), { reason, delayMs, nowMs, most });
  const end = (position: number, nowMs: number) => handed.end(groupEvent(position), nowMs);
  return { handed, arrive, out, hold, end };
}

const groupEvent = (position: number): GroupEvent => ({ event: eventAt(position), retryCount: 0 });

describe('what the server has handed over', () => {
  test('is handed out in its order, as many at a time as the buffer has room for', () => {
    const { arrive, out, end } = opened();
    for (const position of [3, 1, 2]) arrive(position, 0);
    expect(out(0)).toEqual([
      [3, 0],
      [1, 0],
    ]);
    expect(out(0)).toEqual([]);
    end(1, 0);
    expect(out(0)).toEqual([[2, 0]]);
  });

  test('is ended once, with what it came with, and only while it is out here', () => {
    const { arrive, out, end } = opened();
    const given = delivery();
    arrive(1, 0, given);
    expect(end(1, 0)).toBeUndefined(); // still waiting
    out(0);
    expect(end(2, 0)).toBeUndefined();
    expect(end(1, TIMEOUT_MS - 1)).toBe(given);
    expect(end(1, TIMEOUT_MS - 1)).toBeUndefined();
  });

  test('is no longer this consumer’s when its time-out has passed', () => {
    const { arrive, out, end, hold } = opened();
    for (const position of [1, 2, 3]) arrive(position, 0);
    out(0);
    expect(end(1, TIMEOUT_MS)).toBeUndefined();
    expect(hold(2, TIMEOUT_MS)).toBeUndefined();
    expect(out(TIMEOUT_MS)).toEqual([]);
  });

  test('waits for its turn until its time-out has passed: then another may have it', () => {
    for (const [afterMs, found] of [
      [TIMEOUT_MS - 1, [[1, 0]]],
      [TIMEOUT_MS, []],
    ] as const) {
      const { arrive, out } = opened();
      arrive(1, 0);
      expect(out(afterMs)).toEqual(found);
    }
  });

  test('again after it was forgotten is handed out once', () => {
    const { arrive, out } = opened();
    for (const position of [1, 2, 3]) arrive(position, 0);
    out(0);
    expect(out(TIMEOUT_MS)).toEqual([]); // the third is forgotten
    arrive(3, TIMEOUT_MS + SERVER_MS - 1);
    expect(out(TIMEOUT_MS + SERVER_MS)).toEqual([[3, 0]]);
  });

  test('takes room until the server must have noticed that its time-out has passed', () => {
    const { arrive, out } = opened();
    arrive(1, 0);
    arrive(2, 0);
    out(0);
    arrive(3, TIMEOUT_MS + SERVER_MS - 1);
    expect(out(TIMEOUT_MS + SERVER_MS - 1)).toEqual([]);
    expect(out(TIMEOUT_MS + SERVER_MS)).toEqual([[3, 0]]);
  });

  test('again while nobody had it was not handed out once more', () => {
    const { handed, arrive, out, end } = opened();
    const [first, second] = [delivery(1), delivery(2)];
    arrive(1, 0, first);
    expect(arrive(1, 900, second)).toBeUndefined();
    expect(handed.next(1_500)).toMatchObject({ retryCount: 1 }); // its time-out counts from the second time
    expect(out(1_500)).toEqual([]);
    expect(end(1, 1_500)).toBe(second);
  });

  test('again while it was out was handed out once more, and takes its place once', () => {
    const { arrive, out, end } = opened();
    arrive(1, 0);
    arrive(2, 0);
    out(0);
    arrive(3, 0);
    expect(arrive(1, TIMEOUT_MS, delivery(1))).toBeUndefined();
    expect(out(TIMEOUT_MS - 1)).toEqual([[3, 0]]);
    expect(end(3, TIMEOUT_MS - 1)).toBeDefined();
    expect(out(TIMEOUT_MS - 1)).toEqual([[1, 1]]);
  });

  test('as often as allowed is to be parked, by whoever handed it out', () => {
    const { arrive, out } = opened();
    const last = delivery(MAX_RETRIES);
    expect(arrive(1, 0, last)).toEqual({
      delivery: last,
      reason: 'handed out 3 times without an acknowledgement',
    });
    expect(arrive(2, 0, delivery(MAX_RETRIES - 1))).toBeUndefined();
    expect(out(0)).toEqual([[2, MAX_RETRIES - 1]]);
    expect(arrive(2, 0, delivery(1))).toMatchObject({ reason: expect.stringContaining('3 times') });
    expect(out(0)).toEqual([]);
  });

  test('is forgotten with the connection, and its room is free', () => {
    const { handed, arrive, out, end } = opened();
    for (const position of [1, 2, 3]) arrive(position, 0);
    out(0);
    handed.disconnected();
    expect(end(1, 0)).toBeUndefined();
    expect(out(0)).toEqual([]);
    for (const position of [3, 4]) arrive(position, 0, delivery(1));
    expect(out(0)).toEqual([
      [3, 1],
      [4, 1],
    ]);
  });
});

describe('an event that is held back', () => {
  test('leaves its room to others, and is handed out when it is due, as a further time', () => {
    const { handed, arrive, out, hold, end } = opened();
    const given = delivery();
    arrive(1, 0, given);
    arrive(2, 0);
    arrive(3, 0);
    out(0);
    expect(hold(1, 0, { delayMs: 500 })).toBeUndefined();
    expect(end(1, 0)).toBeUndefined();
    expect(out(0)).toEqual([[3, 0]]);
    end(2, 0);
    expect(handed.quietMs(100)).toBe(400);
    expect(out(499)).toEqual([]);
    expect(out(500)).toEqual([[1, 1]]);
    expect(end(1, 500)).toBe(given);
  });

  test('for longer than its time-out stays here as long as the server hands it back', () => {
    const { arrive, out, hold, end } = opened();
    arrive(1, 0);
    out(0);
    hold(1, 0, { delayMs: 2_500 });
    const again = delivery(7);
    arrive(1, TIMEOUT_MS, delivery(6));
    expect(out(TIMEOUT_MS)).toEqual([]);
    arrive(1, 2 * TIMEOUT_MS, again);
    expect(out(2_499)).toEqual([]);
    expect(out(2_500)).toEqual([[1, 1]]);
    expect(end(1, 2_500)).toBe(again);
  });

  test('waits for the server to hand it back where its time-out has passed when it is due', () => {
    const { arrive, out, hold } = opened();
    arrive(1, 0);
    out(0);
    hold(1, 0, { delayMs: 1_500 });
    expect(out(1_500)).toEqual([]);
    arrive(1, 1_600, delivery(1));
    expect(out(1_600)).toEqual([[1, 1]]);
  });

  test('is forgotten where the server does not hand it back: another has it', () => {
    const { arrive, out, hold } = opened();
    arrive(1, 0);
    out(0);
    hold(1, 0, { delayMs: 1_500 });
    expect(out(1_500 + SERVER_MS - 1)).toEqual([]);
    expect(out(1_500 + SERVER_MS)).toEqual([]);
    arrive(1, 4_000, delivery(5 - MAX_RETRIES)); // counts as the server says from now on
    expect(out(4_000)).toEqual([[1, 2]]);
  });

  test('is to be parked with the last reason where it was handed out as often as allowed', () => {
    const { arrive, out, hold } = opened();
    const given = delivery(MAX_RETRIES - 2);
    arrive(1, 0, given);
    out(0);
    expect(hold(1, 0)).toBeUndefined();
    out(0);
    expect(hold(1, 0, { reason: 'the last' })).toEqual({ delivery: given, reason: 'the last' });
    expect(out(TIMEOUT_MS / 2)).toEqual([]);
  });

  test('gives way to a later one, and is parked with its own reason, where too many are held', () => {
    const { arrive, out, hold } = opened();
    const given = [delivery(), delivery(), delivery()];
    for (const [index, each] of given.entries()) {
      arrive(index, 0, each);
      out(0);
      const parked = hold(index, 0, { delayMs: 500, reason: `reason ${index}`, most: 2 });
      if (index < 2) expect(parked).toBeUndefined();
      else expect(parked).toMatchObject({ delivery: given[0], reason: 'reason 0' });
    }
    expect(out(500)).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  test('outlives a lost connection, and waits until the server hands it over again', () => {
    const { handed, arrive, out, hold } = opened();
    arrive(1, 0);
    out(0);
    hold(1, 0, { delayMs: 500 });
    handed.disconnected();
    expect(out(500)).toEqual([]);
    arrive(1, 600, delivery(4));
    expect(out(600)).toEqual([[1, 1]]);
  });
});

describe('the time for which nothing falls due', () => {
  test('ends with the next time-out or delay, and is never nothing', () => {
    const { handed, arrive, out, hold } = opened();
    expect(handed.quietMs(0)).toBe(Number.POSITIVE_INFINITY);
    arrive(1, 0);
    expect(handed.quietMs(0)).toBe(TIMEOUT_MS);
    out(0);
    hold(1, 0, { delayMs: 300 });
    expect(handed.quietMs(0)).toBe(300);
    expect(handed.quietMs(300)).toBe(1);
    expect(handed.quietMs(9_999)).toBe(1);
  });

  test('is found again once something has fallen due', () => {
    const { handed, arrive, out, hold } = opened();
    arrive(1, 0);
    arrive(2, 100);
    out(100);
    hold(1, 100, { delayMs: 200 });
    hold(2, 100, { delayMs: 700 });
    expect(out(300)).toEqual([[1, 1]]);
    expect(handed.quietMs(300)).toBe(500);
  });
});

describe('events that are large', () => {
  const large = (position: number) =>
    ({ position, data: 'x'.repeat(1024 * 1024) }) as unknown as RecordedEvent;

  test('fill what waits and is out, until they end', () => {
    const { handed, out, end } = opened();
    handed.arrive(large(1), delivery(), 0);
    expect(handed.isFull).toBe(false);
    handed.arrive(large(2), delivery(), 0);
    expect(handed.isFull).toBe(true);
    expect(out(0)).toHaveLength(2);
    expect(handed.isFull).toBe(true);
    end(1, 0);
    expect(handed.isFull).toBe(false);
    handed.disconnected();
    handed.arrive(large(3), delivery(), 0);
    expect(handed.isFull).toBe(false);
  });

  test('are kept back up to 64 MiB, and the oldest is parked beyond that', () => {
    const { handed, out, hold } = opened();
    const parked: number[] = [];
    for (let position = 1; position <= 70; position++) {
      handed.arrive(large(position), { ...delivery(), position } as never, 0);
      out(0);
      const ended = hold(position, 0, { delayMs: 500, most: 1_000 });
      if (ended !== undefined) parked.push((ended.delivery as unknown as { position: number }).position);
    }
    expect(parked).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(handed.isFull).toBe(false);
  });
});
