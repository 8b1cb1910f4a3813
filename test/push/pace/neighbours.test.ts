import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/customers/sample/random.ts';
import { LaneAtHost } from '../../../src/push/pace/lane-at-host.ts';
import { Neighbours } from '../../../src/push/pace/neighbours.ts';
import { RequestLimit } from '../../../src/push/pace/request-limit.ts';
import type { AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import { answered, CUT, SUCCESS, TIMEOUT } from '../../support/deliveries/deliveries.ts';
import { type LaneResult, PacedRun } from '../../support/deliveries/paced-run.ts';
import type { ReceiverPlan } from '../../support/deliveries/simulated-receiver.ts';

const HOST = 'https://vendor.example';
const MIN_KEPT = 0.7;

interface Burst {
  readonly victim: ReceiverPlan;
  readonly neighbour?: ReceiverPlan;
  readonly each: number;
}

/** Sends a burst to the victim, and another one to its neighbour at the same host if there is one. */
function victimOf({ victim, neighbour, each }: Burst): LaneResult {
  const [url, other] = [`${HOST}/victim`, `${HOST}/neighbour`];
  const random = new Random(1);
  const run = new PacedRun({
    receivers: { [url]: victim, ...(neighbour && { [other]: neighbour }) },
    lanes: { ...(neighbour && { neighbour: other }), victim: url },
    each,
    random: () => random.next(),
  });
  return run.run().of('victim');
}

describe('a webhook keeps at least 0.7 of what it gets alone beside one at its host that', () => {
  const quick = { workers: 1_000, workMs: 10 };
  const always = (status: 400 | 429 | 503, askedMs: number | null) => ({
    ...quick,
    refusing: { share: 1, status, askedMs },
  });
  const neighbours: Readonly<Record<string, ReceiverPlan>> = {
    'answers after 490 ms': { ...quick, workMs: 490 },
    'hangs every second time': { ...quick, losing: { every: 2, how: 'hangs' } },
    'always hangs': { ...quick, losing: { every: 1, how: 'hangs' } },
    'cuts every second time': { ...quick, losing: { every: 2, how: 'cuts' } },
    'always cuts': { ...quick, losing: { every: 1, how: 'cuts' } },
    'answers 503 with Retry-After: 0': always(503, 0),
    'answers 503': always(503, null),
    'answers 429 with Retry-After: 0': always(429, 0),
    'answers 429 with Retry-After: 5': always(429, 5_000),
    'answers 429': always(429, 1_000),
    'answers 400 at once': always(400, null),
  };
  const victims: Readonly<Record<string, Burst>> = {
    'takes 150 ms': { victim: { workers: 1_000, workMs: 150 }, each: 400 },
    'has eight workers of 40 ms': { victim: { workers: 8, workMs: 40 }, each: 500 },
  };
  for (const [how, neighbour] of Object.entries(neighbours))
    test(how, () => {
      for (const burst of Object.values(victims)) {
        const alone = victimOf(burst);
        const beside = victimOf({ ...burst, neighbour });
        expect(alone.firstPassMs / beside.firstPassMs).toBeGreaterThanOrEqual(MIN_KEPT);
        expect(beside).toMatchObject({ delivered: burst.each, firstFailed: 0 });
      }
    });
});

/** Some webhooks of one host, and a clock that tests move. */
class Host {
  readonly neighbours = new Neighbours();
  readonly lanes = { a: new LaneAtHost('a'), b: new LaneAtHost('b') };
  nowMs = 100_000;

  /** Ends an attempt that was sent `answerMs` ago. Returns whether its webhook stands out. */
  end(
    name: 'a' | 'b',
    outcome: AttemptOutcome,
    answerMs = 10,
    { place = 1, isOvertaken = true } = {},
  ): boolean {
    const { nowMs } = this;
    const lane = this.lanes[name];
    const attempt = { startedAtMs: nowMs - answerMs, nowMs, outcome, answerMs, place, isOvertaken };
    const standsOut = this.neighbours.standsOut(lane, attempt);
    lane.own = standsOut ? new RequestLimit() : undefined;
    return standsOut;
  }

  /** Both are answered well in turn. */
  wells(count: number): void {
    for (let n = 0; n < count; n++) {
      for (const name of ['a', 'b'] as const) {
        this.nowMs += 10;
        this.end(name, SUCCESS);
      }
    }
  }
}

describe('a webhook', () => {
  test('stands out if it is not answered while another one, sent later, is', () => {
    const host = new Host();
    host.wells(1);
    host.nowMs += 500;
    host.end('b', SUCCESS);
    expect(host.end('a', TIMEOUT, 500)).toBe(true);
  });

  test('does not stand out if nobody has been answered since', () => {
    const host = new Host();
    host.wells(30);
    host.nowMs += 500;
    for (let n = 0; n < 8; n++)
      for (const name of ['a', 'b'] as const) expect(host.end(name, TIMEOUT, 500)).toBe(false);
  });

  test('does not stand out by a time that its place explains', () => {
    const host = new Host();
    for (let place = 1; place <= 8; place++) {
      host.nowMs += 50;
      expect(host.end('b', SUCCESS, 50 * place, { place })).toBe(false);
      expect(host.end('a', SUCCESS, 50 * (place + 8), { place: place + 8 })).toBe(false);
    }
  });

  test('does not stand out by a time if none that started later has been answered sooner', () => {
    const host = new Host();
    host.wells(1);
    for (let n = 0; n < 8; n++) {
      host.nowMs += 400;
      expect(host.end('a', SUCCESS, 390, { isOvertaken: false })).toBe(false);
      expect(host.end('b', SUCCESS, 10)).toBe(false);
    }
  });

  test('does not stand out by failures that the others have too', () => {
    const host = new Host();
    for (let n = 0; n < 20; n++) {
      host.wells(1);
      for (const name of ['a', 'b'] as const) expect(host.end(name, n % 2 === 0 ? CUT : SUCCESS)).toBe(false);
    }
  });

  test('stands out by its failures until most of its attempts are answered well again', () => {
    const host = new Host();
    host.wells(2);
    const failed = [1, 2, 3].map(() => {
      host.nowMs += 10;
      host.end('b', SUCCESS);
      return host.end('a', answered(503));
    });
    expect(failed).toEqual([false, false, true]);
    const recovered = Array.from({ length: 150 }, () => {
      host.nowMs += 10;
      return host.end('a', SUCCESS);
    });
    expect([recovered[0], recovered.at(-1)]).toEqual([true, false]);
  });

  test('that is alone at its host never stands out', () => {
    const host = new Host();
    for (let n = 0; n < 10; n++) {
      host.nowMs += 500;
      expect(host.end('a', n % 2 === 0 ? TIMEOUT : SUCCESS, 490)).toBe(false);
    }
  });
});
