import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countByLane, LaneSlots } from '../../../src/push/dispatch/lane-slots.ts';
import type { SendResult } from '../../../src/push/sender/sender.ts';
import { OK, TIMEOUT } from '../../support/deliveries/push.ts';

const MAX_IN_FLIGHT = 512;
const QUARTER = MAX_IN_FLIGHT / 4;
const FAST: SendResult = { outcome: OK, durationMs: 5, lateMs: 0 };
const SLOW: SendResult = { outcome: OK, durationMs: 450, lateMs: 0 };
const FAILED: SendResult = { outcome: TIMEOUT, durationMs: 500, lateMs: 0 };
/** Enough successes for a lane to have its full width. */
const warm = (outcome: SendResult) => Array.from({ length: 24 }, () => outcome);

function lanesWith(outcomes: Readonly<Record<string, readonly SendResult[]>>): LaneSlots {
  const lanes = new LaneSlots();
  for (const [prefix, all] of Object.entries(outcomes)) {
    for (const outcome of all) {
      lanes.started(prefix, 0);
      lanes.ended(prefix, outcome);
    }
  }
  return lanes;
}

/** Starts all that the lanes may have, one claim after another. */
function fill(lanes: LaneSlots, prefixes: readonly string[]): Map<string, number> {
  const started = new Map<string, number>();
  for (let progress = true; progress; ) {
    progress = false;
    const grant = lanes.grant(0);
    let left = grant.limit;
    for (const prefix of prefixes) {
      for (let free = Math.min(grant.laneCapacity(prefix), left); free > 0; free--) {
        lanes.started(prefix, 0);
        started.set(prefix, (started.get(prefix) ?? 0) + 1);
        left--;
        progress = true;
      }
    }
  }
  return started;
}

test('a webhook has 32 attempts in flight when its receiver answers, 16 when it is slow, 8 when new, 2 when it fails', () => {
  const lanes = lanesWith({
    proven: warm(FAST),
    slow: warm(SLOW),
    failing: [...warm(FAST), FAILED, FAILED],
  });
  expect(Object.fromEntries(fill(lanes, ['proven', 'slow', 'new', 'failing']))).toEqual({
    proven: 32,
    slow: 16,
    new: 8,
    failing: 2,
  });
});

test('a lane widens by one attempt with each success, and starts narrow again after it was idle', () => {
  const lanes = lanesWith({ a: [FAST, FAST] });
  expect(lanes.grant(0).laneCapacity('a')).toBe(10);
  const full = lanesWith({ a: warm(FAST) });
  expect(full.grant(3_000).laneCapacity('a')).toBe(32);
  expect(full.grant(3_001).laneCapacity('a')).toBe(8);
  full.started('a', 3_001);
  full.ended('a', FAST);
  expect(full.grant(3_001).laneCapacity('a')).toBe(9);
});

test('one failure does not make a lane a failing one, and one success ends it', () => {
  const lanes = lanesWith({
    once: [...warm(FAST), FAILED],
    back: [FAILED, FAILED, ...warm(FAST)],
  });
  const long = lanesWith({ a: [...warm(FAST), FAILED, FAILED, FAILED, FAILED, FAST] });
  expect(long.grant(0).laneCapacity('a')).toBe(32);
  expect(fill(lanes, ['once']).get('once')).toBe(32);
  expect(fill(lanes, ['back']).get('back')).toBe(32);
});

test('a lane widens to 32 attempts and no further, and by successes alone', () => {
  const long = lanesWith({ a: [...warm(FAST), ...warm(FAST)] });
  expect(long.grant(0).laneCapacity('a')).toBe(32);
  for (let index = 0; index < 32; index++) long.started('a', 0);
  expect(long.grant(0).laneCapacity('a')).toBe(0);
  const flaky = lanesWith({ a: [FAST, { ...FAILED, durationMs: 5 }, FAST] });
  expect(flaky.grant(0).laneCapacity('a')).toBe(10);
});

test('a lane is idle after three seconds without a start, not while attempts are under way', () => {
  const lanes = lanesWith({ a: warm(FAST) });
  lanes.started('a', 0);
  expect(lanes.grant(10_000).laneCapacity('a')).toBe(31);
  lanes.started('a', 10_000);
  expect(lanes.grant(10_000).laneCapacity('a')).toBe(30);
});

test('a lane is slow once its attempts take more than 250 ms on the whole', () => {
  const of = (durationMs: number) => lanesWith({ a: warm({ ...FAST, durationMs }) }).grant(0);
  expect(of(250).laneCapacity('a')).toBe(32);
  expect(of(251).laneCapacity('a')).toBe(16);
  const once = lanesWith({ a: [...warm(FAST), SLOW, SLOW, SLOW] });
  expect(once.grant(0).laneCapacity('a')).toBe(32);
  const often = lanesWith({ a: [...warm(FAST), ...warm(SLOW).slice(0, 4)] });
  expect(often.grant(0).laneCapacity('a')).toBe(16);
});

test('one claim takes at most a hundred deliveries, and no more than there are free slots', () => {
  const names = Array.from({ length: 20 }, (_, index) => `fine${index}`);
  const lanes = lanesWith(Object.fromEntries(names.map((name) => [name, warm(FAST)])));
  expect(lanes.grant(0).limit).toBe(100);
  fill(lanes, names.slice(0, 13)); // 416 under way
  expect(lanes.grant(0).limit).toBe(96);
  fill(lanes, names);
  expect(lanes.grant(0).limit).toBe(0);
});

test('lanes that are stored together share the free slots: each what it wants, all no more than there are', () => {
  const names = Array.from({ length: 16 }, (_, index) => `fine${index}`);
  const lanes = lanesWith(Object.fromEntries(names.map((name) => [name, warm(FAST)])));
  expect(names.map(lanes.grant(0, new Map(names.map((name) => [name, 3]))).laneCapacity)).toEqual(
    names.map(() => 3),
  );
  for (const name of names) for (let index = 0; index < 31; index++) lanes.started(name, 0);
  for (let index = 0; index < 10; index++) lanes.started('fine15', 0);
  expect(lanes.inFlight).toBe(MAX_IN_FLIGHT - 6);
  const several = ['fine0', 'new0', 'fine1', 'new1', 'new2'];
  const { laneCapacity } = lanes.grant(0, new Map(several.map((name) => [name, 2])));
  expect(several.map(laneCapacity)).toEqual([1, 2, 1, 2, 0]);
});

test('a lane that is asked for takes no slot of another class where it is not known what each wants', () => {
  const names = Array.from({ length: 16 }, (_, index) => `fine${index}`);
  const lanes = lanesWith(Object.fromEntries(names.map((name) => [name, warm(FAST)])));
  const { laneCapacity } = lanes.grant(0);
  expect(names.map(laneCapacity)).toEqual(names.map(() => 32)); // all slots, though nothing may be due there
  expect(laneCapacity('new')).toBe(8);
});

test('what each lane wants is the number of its deliveries', () => {
  const deliveries = ['a', 'b', 'a'].map((prefix) => ({ prefix }));
  expect(countByLane(deliveries)).toEqual(
    new Map([
      ['a', 2],
      ['b', 1],
    ]),
  );
});

test('a slot that ends without an attempt is free again, and changes nothing else of its lane', () => {
  const lanes = lanesWith({ a: [...warm(FAST), FAILED] });
  for (let index = 0; index < 3; index++) lanes.started('a', 0);
  for (let index = 0; index < 3; index++) lanes.ended('a');
  expect(lanes.inFlight).toBe(0);
  expect(lanes.grant(0).laneCapacity('a')).toBe(32);
});

test('a lane has one capacity for a whole claim, and its class counts it once', () => {
  const names = Array.from({ length: 20 }, (_, index) => `new${index}`);
  const { laneCapacity } = new LaneSlots().grant(0);
  for (let again = 0; again < 3; again++) {
    expect(names.map(laneCapacity)).toEqual(names.map((_, index) => (index < 16 ? 8 : 0)));
  }
});

test('however many webhooks hang, they have a quarter of the slots together', () => {
  const names = Array.from({ length: 500 }, (_, index) => `dead${index}`);
  const lanes = lanesWith(Object.fromEntries(names.map((name) => [name, [FAILED, FAILED]])));
  fill(lanes, names);
  expect(lanes.inFlight).toBe(QUARTER);
});

test('failing, slow and new webhooks together leave a quarter of the slots to those that answer', () => {
  const group = (name: string) => Array.from({ length: 300 }, (_, index) => `${name}${index}`);
  const entries = [
    ...group('dead').map((name) => [name, [FAILED, FAILED]] as const),
    ...group('slow').map((name) => [name, [SLOW]] as const),
    ...group('fine').map((name) => [name, [FAST]] as const),
  ];
  const lanes = lanesWith(Object.fromEntries(entries));
  fill(lanes, [...group('dead'), ...group('slow'), ...group('new')]);
  expect(lanes.inFlight).toBe(3 * QUARTER);
  fill(lanes, group('fine'));
  expect(lanes.inFlight).toBe(MAX_IN_FLIGHT);
});

test('a lane that turns failing while its attempts are under way counts with all of them in its class', () => {
  const lanes = new LaneSlots();
  for (let index = 0; index < 8; index++) lanes.started('a', 0);
  lanes.ended('a', FAILED);
  lanes.ended('a', FAILED);
  const names = Array.from({ length: 200 }, (_, index) => `dead${index}`);
  for (const name of names) {
    for (const outcome of [FAILED, FAILED]) {
      lanes.started(name, 0);
      lanes.ended(name, outcome);
    }
  }
  fill(lanes, ['a', ...names]);
  expect(lanes.inFlight).toBe(QUARTER);
});

test('a lane widens with each success, but not while this process is late', () => {
  const late = { ...FAST, lateMs: 101 };
  const widthAfter = (...outcomes: readonly SendResult[]) =>
    lanesWith({ a: outcomes }).grant(0).laneCapacity('a');
  expect(widthAfter(FAST, FAST, { ...FAST, lateMs: 100 })).toBe(11);
  expect(widthAfter(FAST, FAST, FAST, late, late)).toBe(11);
});

test('what this process was late does not make a lane slow', () => {
  const late = { outcome: OK, durationMs: 900, lateMs: 880 };
  const lanes = lanesWith({ a: [...warm(FAST), late], b: [...warm(FAST), ...warm({ ...late, lateMs: 0 })] });
  expect(lanes.grant(0).laneCapacity('a')).toBe(32);
  expect(lanes.grant(0).laneCapacity('b')).toBe(16);
});

test('a blocked lane gets nothing until it is unblocked', () => {
  const lanes = lanesWith({ a: warm(FAST) });
  lanes.setBlocked('a', true);
  expect(lanes.grant(0).laneCapacity('a')).toBe(0);
  lanes.setBlocked('a', false);
  expect(lanes.grant(0).laneCapacity('a')).toBe(32);
});

test('no order of starts and ends exceeds a limit', () => {
  const prefix = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const step = fc.record({
    prefix,
    outcome: fc.constantFrom(OK, TIMEOUT),
    durationMs: fc.constantFrom(5, 450),
    lateMs: fc.constantFrom(0, 5),
    end: fc.boolean(),
  });
  const holds = (steps: readonly (SendResult & { prefix: string; end: boolean })[]) => {
    const lanes = new LaneSlots();
    const inFlight = new Map<string, number>();
    for (const { prefix: name, end, ...result } of steps) {
      const before = inFlight.get(name) ?? 0;
      if (end && before > 0) {
        lanes.ended(name, result);
        inFlight.set(name, before - 1);
      } else {
        const capacity = lanes.grant(0).laneCapacity(name);
        for (let index = 0; index < capacity; index++) lanes.started(name, 0);
        inFlight.set(name, before + capacity);
        expect(before + capacity).toBeLessThanOrEqual(Math.max(before, 32));
      }
      expect(lanes.inFlight).toBe([...inFlight.values()].reduce((sum, count) => sum + count, 0));
      expect(lanes.inFlight).toBeLessThanOrEqual(MAX_IN_FLIGHT);
    }
  };
  fc.assert(fc.property(fc.array(step, { maxLength: 100 }), holds), { numRuns: 100 });
});
