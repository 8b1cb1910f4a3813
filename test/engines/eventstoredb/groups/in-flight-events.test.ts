import { describe, expect, test } from 'vitest';
import {
  EventStoreDbInFlightEvents,
  MAX_DELAYED,
  type Message,
} from '../../../../src/engines/eventstoredb/groups/in-flight-events.ts';
import type { GroupEvent } from '../../../../src/event-store/event-store.ts';
import type { RecordedEvent } from '../../../../src/event-store/recorded-event.ts';

const TIMEOUT_MS = 1_000;
/** How long after a time-out the server may still send the event again. */
const SERVER_MS = 2_000;

const eventAt = (position: number) => ({ position }) as RecordedEvent;
const message = (retryCount = 0) => ({ retryCount }) as Message;

/** Opens a buffer that has at most two events out at a time. */
function opened() {
  const inFlight = new EventStoreDbInFlightEvents(2, { ackTimeoutMs: TIMEOUT_MS });
  const receive = (position: number, nowMs: number, given = message()) =>
    inFlight.receive(eventAt(position), given, nowMs);
  /** Hands out all events that can be, as positions and retry counts. */
  const out = (nowMs: number): [number, number][] => {
    const found: [number, number][] = [];
    for (let next = inFlight.next(nowMs); next !== undefined; next = inFlight.next(nowMs)) {
      found.push([next.event.position, next.retryCount]);
    }
    return found;
  };
  const delay = (position: number, nowMs: number, { delayMs = 0, reason = 'later' } = {}) =>
    inFlight.delay(groupEvent(position), { reason, delayMs, nowMs });
  const end = (position: number, nowMs: number) => inFlight.end(groupEvent(position), nowMs);
  return { inFlight, receive, out, delay, end };
}

const groupEvent = (position: number): GroupEvent => ({ event: eventAt(position), retryCount: 0 });

describe('an event that the server has sent', () => {
  test('is handed out in the order of arrival, at most as many at a time as the buffer size', () => {
    const { receive, out, end } = opened();
    for (const position of [3, 1, 2]) receive(position, 0);
    expect(out(0)).toEqual([
      [3, 0],
      [1, 0],
    ]);
    expect(out(0)).toEqual([]);
    end(1, 0);
    expect(out(0)).toEqual([[2, 0]]);
  });

  test('is ended once, with its own message, and only while it is out', () => {
    const { receive, out, end } = opened();
    const given = message();
    receive(1, 0, given);
    expect(end(1, 0)).toBeUndefined(); // still waiting
    out(0);
    expect(end(2, 0)).toBeUndefined();
    expect(end(1, TIMEOUT_MS - 1)).toBe(given);
    expect(end(1, TIMEOUT_MS - 1)).toBeUndefined();
  });

  test('is no longer this consumer’s when its time-out has passed', () => {
    const { receive, out, end, delay } = opened();
    for (const position of [1, 2, 3]) receive(position, 0);
    out(0);
    expect(end(1, TIMEOUT_MS)).toBeUndefined();
    expect(delay(2, TIMEOUT_MS)).toBeUndefined();
    expect(out(TIMEOUT_MS)).toEqual([]);
  });

  test('is handed out until its time-out has passed: then another consumer may have it', () => {
    for (const [afterMs, found] of [
      [TIMEOUT_MS - 1, [[1, 0]]],
      [TIMEOUT_MS, []],
    ] as const) {
      const { receive, out } = opened();
      receive(1, 0);
      expect(out(afterMs)).toEqual(found);
    }
  });

  test('again after it was dropped is handed out once', () => {
    const { receive, out } = opened();
    for (const position of [1, 2, 3]) receive(position, 0);
    out(0);
    expect(out(TIMEOUT_MS)).toEqual([]); // the third is dropped
    receive(3, TIMEOUT_MS + SERVER_MS - 1);
    expect(out(TIMEOUT_MS + SERVER_MS)).toEqual([[3, 0]]);
  });

  test('counts as out until the server must have noticed that its time-out has passed', () => {
    const { receive, out } = opened();
    receive(1, 0);
    receive(2, 0);
    out(0);
    receive(3, TIMEOUT_MS + SERVER_MS - 1);
    expect(out(TIMEOUT_MS + SERVER_MS - 1)).toEqual([]);
    expect(out(TIMEOUT_MS + SERVER_MS)).toEqual([[3, 0]]);
  });

  test('again before it was handed out keeps its retry count', () => {
    const { inFlight, receive, out, end } = opened();
    const [first, second] = [message(1), message(2)];
    receive(1, 0, first);
    receive(1, 900, second);
    expect(inFlight.next(1_500)).toMatchObject({ retryCount: 1 }); // its time-out starts with the second message
    expect(out(1_500)).toEqual([]);
    expect(end(1, 1_500)).toBe(second);
  });

  test('again while it was out has a higher retry count, and counts as out once', () => {
    const { receive, out, end } = opened();
    receive(1, 0);
    receive(2, 0);
    out(0);
    receive(3, 0);
    receive(1, TIMEOUT_MS, message(1));
    expect(out(TIMEOUT_MS - 1)).toEqual([[3, 0]]);
    expect(end(3, TIMEOUT_MS - 1)).toBeDefined();
    expect(out(TIMEOUT_MS - 1)).toEqual([[1, 1]]);
  });

  test('is dropped with the connection, and no longer counts as out', () => {
    const { inFlight, receive, out, end } = opened();
    for (const position of [1, 2, 3]) receive(position, 0);
    out(0);
    inFlight.disconnected();
    expect(end(1, 0)).toBeUndefined();
    expect(out(0)).toEqual([]);
    for (const position of [3, 4]) receive(position, 0, message(1));
    expect(out(0)).toEqual([
      [3, 1],
      [4, 1],
    ]);
  });
});

describe('an event that is delayed', () => {
  test('does not count as out, and is handed out when it is due, with a higher retry count', () => {
    const { inFlight, receive, out, delay, end } = opened();
    const given = message();
    receive(1, 0, given);
    receive(2, 0);
    receive(3, 0);
    out(0);
    expect(delay(1, 0, { delayMs: 500 })).toBeUndefined();
    expect(end(1, 0)).toBeUndefined();
    expect(out(0)).toEqual([[3, 0]]);
    end(2, 0);
    expect(inFlight.idleMs(100)).toBe(400);
    expect(out(499)).toEqual([]);
    expect(out(500)).toEqual([[1, 1]]);
    expect(end(1, 500)).toBe(given);
  });

  test('for longer than its time-out is kept while the server sends it again to this consumer', () => {
    const { receive, out, delay, end } = opened();
    receive(1, 0);
    out(0);
    delay(1, 0, { delayMs: 2_500 });
    const again = message(7);
    receive(1, TIMEOUT_MS, message(6));
    expect(out(TIMEOUT_MS)).toEqual([]);
    receive(1, 2 * TIMEOUT_MS, again);
    expect(out(2_499)).toEqual([]);
    expect(out(2_500)).toEqual([[1, 1]]);
    expect(end(1, 2_500)).toBe(again);
  });

  test('waits for the server to send it again where its time-out has passed when it is due', () => {
    const { receive, out, delay } = opened();
    receive(1, 0);
    out(0);
    delay(1, 0, { delayMs: 1_500 });
    expect(out(1_500)).toEqual([]);
    receive(1, 1_600, message(1));
    expect(out(1_600)).toEqual([[1, 1]]);
  });

  test('is dropped where the server does not send it again: another consumer has it', () => {
    const { receive, out, delay } = opened();
    receive(1, 0);
    out(0);
    delay(1, 0, { delayMs: 1_500 });
    expect(out(1_500 + SERVER_MS - 1)).toEqual([]);
    expect(out(1_500 + SERVER_MS)).toEqual([]);
    receive(1, 4_000, message(2)); // from now on the server's retry count holds
    expect(out(4_000)).toEqual([[1, 2]]);
  });

  test('is parked with its own reason where too many later ones are delayed', () => {
    const { receive, out, delay } = opened();
    const first = message();
    for (let position = 0; position <= MAX_DELAYED; position++) {
      receive(position, 0, position === 0 ? first : message());
      out(0);
      const parked = delay(position, 0, { delayMs: 500, reason: `reason ${position}` });
      if (position < MAX_DELAYED) expect(parked).toBeUndefined();
      else expect(parked).toMatchObject({ message: first, reason: 'reason 0' });
    }
    expect(out(500)).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  test('is remembered when the connection is lost, until the server sends it again', () => {
    const { inFlight, receive, out, delay } = opened();
    receive(1, 0);
    out(0);
    delay(1, 0, { delayMs: 500 });
    inFlight.disconnected();
    expect(out(500)).toEqual([]);
    receive(1, 600, message(4));
    expect(out(600)).toEqual([[1, 1]]);
  });
});

describe('the idle time', () => {
  test('lasts until the next time-out or delay ends, and is at least a millisecond', () => {
    const { inFlight, receive, out, delay } = opened();
    expect(inFlight.idleMs(0)).toBe(Number.POSITIVE_INFINITY);
    receive(1, 0);
    expect(inFlight.idleMs(0)).toBe(TIMEOUT_MS);
    out(0);
    delay(1, 0, { delayMs: 300 });
    expect(inFlight.idleMs(0)).toBe(300);
    expect(inFlight.idleMs(300)).toBe(1);
    expect(inFlight.idleMs(9_999)).toBe(1);
  });

  test('is calculated again once an event was due', () => {
    const { inFlight, receive, out, delay } = opened();
    receive(1, 0);
    receive(2, 100);
    out(100);
    delay(1, 100, { delayMs: 200 });
    delay(2, 100, { delayMs: 700 });
    expect(out(300)).toEqual([[1, 1]]);
    expect(inFlight.idleMs(300)).toBe(500);
  });
});

describe('large events', () => {
  const large = (position: number) =>
    ({ position, data: 'x'.repeat(1024 * 1024) }) as unknown as RecordedEvent;

  test('make the buffer full until they are ended', () => {
    const { inFlight, out, end } = opened();
    inFlight.receive(large(1), message(), 0);
    expect(inFlight.isFull).toBe(false);
    inFlight.receive(large(2), message(), 0);
    expect(inFlight.isFull).toBe(true);
    expect(out(0)).toHaveLength(2);
    expect(inFlight.isFull).toBe(true);
    end(1, 0);
    expect(inFlight.isFull).toBe(false);
    inFlight.disconnected();
    inFlight.receive(large(3), message(), 0);
    expect(inFlight.isFull).toBe(false);
  });

  test('are delayed up to 64 MiB, and the oldest is parked beyond that', () => {
    const { inFlight, out, delay } = opened();
    const parked: number[] = [];
    for (let position = 1; position <= 70; position++) {
      inFlight.receive(large(position), { ...message(), position } as never, 0);
      out(0);
      const ended = delay(position, 0, { delayMs: 500 });
      if (ended !== undefined) parked.push((ended.message as unknown as { position: number }).position);
    }
    expect(parked).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(inFlight.isFull).toBe(false);
  });
});
