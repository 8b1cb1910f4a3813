import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/customers/sample/random.ts';
import { PacedRun } from '../../support/deliveries/paced-run.ts';
import { type ReceiverPlan, SimulatedReceiver } from '../../support/deliveries/simulated-receiver.ts';

const HOST = 'https://receiver.example';
const MANY = 600;
const FEW = 60;
/** The deliveries by whose time a receiver's use is judged: the last ones may wait 30 s for a retry. */
const JUDGED = 0.95;

/** The requirements on a burst of 600: the least use of the receiver, and the largest shares of failed first attempts and of repetitions. */
interface Goal {
  readonly used: number;
  readonly failed?: number;
  readonly repeated?: number;
}

interface Burst {
  readonly count: number;
  readonly webhooks?: number;
}

/** Sends a burst and judges it. `used` compares its time with that of a sender which knows the receiver. */
function judge(plan: ReceiverPlan, { count, webhooks = 1 }: Burst) {
  const random = new Random(1);
  const names = Array.from({ length: webhooks }, (_, n) => `webhook${n}`);
  const run = new PacedRun({
    receivers: { [HOST]: plan },
    lanes: Object.fromEntries(names.map((name) => [name, `${HOST}/${name}`])),
    each: count / webhooks,
    random: () => random.next(),
  }).run();
  const results = [...run.results.values()];
  const sum = (of: (result: (typeof results)[number]) => number): number =>
    results.reduce((total, result) => total + of(result), 0);
  const acceptedMs = results.flatMap((result) => result.acceptedMs).sort((a, b) => a - b);
  const judged = Math.round(JUDGED * count);
  const { window, bucket, workMs } = plan;
  const atOnce = window?.size ?? bucket?.size ?? 0;
  const { perSecond } = new SimulatedReceiver(plan, () => random.next());
  const idealMs = (1000 * Math.max(0, judged - atOnce)) / perSecond + workMs;
  return {
    used: idealMs / (acceptedMs[judged - 1] ?? Infinity),
    failed: sum(({ firstFailed }) => firstFailed) / count,
    repeated: sum(({ requests }) => requests) / count - 1,
    lost: sum(({ failed }) => failed),
    wideAtMs: run.wideAtMs.get(HOST) ?? Infinity,
  };
}

const workers = (count: number, workMs: number, more: Partial<ReceiverPlan> = {}): ReceiverPlan => ({
  workers: count,
  workMs,
  ...more,
});
const bucket = (askedMs: number) => workers(4, 2, { bucket: { size: 5, perSecond: 5, askedMs } });
const window = (size: number) => workers(4, 2, { window: { size, windowMs: 1_000 * size } });
const pause = { everyMs: 5_000, forMs: 300 };
const OWN_PRESSURE = { failed: 0.01 };
const REFUSALS = { failed: 0.05, repeated: 0.05 };

const ROWS: Readonly<Record<string, readonly [ReceiverPlan, Goal]>> = {
  'one worker of 20 ms': [workers(1, 20), { used: 0.95, ...OWN_PRESSURE }],
  'one worker of 50 ms': [workers(1, 50), { used: 0.95, ...OWN_PRESSURE }],
  'one worker of 100 ms': [workers(1, 100), { used: 0.95, ...OWN_PRESSURE }],
  'one worker of about 100 ms': [workers(1, 100, { spread: 0.5 }), { used: 0.9, failed: 0.015 }],
  'one worker of 200 ms': [workers(1, 200), { used: 0.95, ...OWN_PRESSURE }],
  'one worker of 350 ms': [workers(1, 350), { used: 0.95, ...OWN_PRESSURE }],
  'one worker of 20 ms that stops': [workers(1, 20, { pause }), { used: 0.9, ...OWN_PRESSURE }],
  'ten workers of 20 ms': [workers(10, 20), { used: 0.9, ...OWN_PRESSURE }],
  'ten workers of 50 ms': [workers(10, 50), { used: 0.9, ...OWN_PRESSURE }],
  'ten workers of 100 ms': [workers(10, 100), { used: 0.9, ...OWN_PRESSURE }],
  'ten workers of 200 ms': [workers(10, 200), { used: 0.85, ...OWN_PRESSURE }],
  'ten workers of 50 ms that stop': [workers(10, 50, { pause }), { used: 0.9, ...OWN_PRESSURE }],
  'ten workers of 100 ms that stop': [workers(10, 100, { pause }), { used: 0.85, ...OWN_PRESSURE }],
  'fifty workers of 20 ms': [workers(50, 20), { used: 0.35, ...OWN_PRESSURE }],
  'fifty workers of 100 ms': [workers(50, 100), { used: 0.4, ...OWN_PRESSURE }],
  'fifty workers of 200 ms': [workers(50, 200), { used: 0.35, ...OWN_PRESSURE }],
  // It could take 3,000 a second, so the burst is over before it is known.
  '150 ms away': [workers(60, 20, { wayMs: 75 }), { used: 0.04, ...OWN_PRESSURE }],
  'ten connections at most': [workers(100, 50, { connections: 10 }), { used: 0.8, failed: 0.02 }],
  'handshakes of 40 ms, each time': [workers(1, 5, { handshakeMs: 40, closes: true }), { used: 0.9 }],
  'handshakes of 100 ms, kept': [workers(1, 20, { handshakeMs: 100 }), { used: 0.8, ...OWN_PRESSURE }],
  '429 above 5 a second, for 1 s': [bucket(1_000), { used: 0.85, ...REFUSALS }],
  '429 above 5 a second, for 5 s': [bucket(5_000), { used: 0.6, ...REFUSALS }],
  // Each refusal costs 30 s, and the first one tells nothing of the rate.
  '429 above 5 a second, for 30 s': [bucket(30_000), { used: 0.3, ...REFUSALS }],
  '429 above 30 in 30 s': [window(30), { used: 0.8, ...REFUSALS }],
  '429 above 60 in 60 s': [window(60), { used: 0.8, ...REFUSALS }],
  '503 when eight wait': [workers(1, 20, { queue: 8 }), { used: 0.95, ...OWN_PRESSURE }],
  '503 for a few, whatever is under way': [
    workers(10, 50, { erring: 0.02 }),
    { used: 0.8, failed: 0.03, repeated: 0.04 },
  ],
};

describe('a burst of 600 uses the receiver, which fails few at the first attempt:', () => {
  for (const [name, [plan, goal]] of Object.entries(ROWS))
    test(name, () => {
      const judged = judge(plan, { count: MANY });
      expect(judged.used).toBeGreaterThanOrEqual(goal.used);
      expect(judged.failed).toBeLessThanOrEqual(goal.failed ?? OWN_PRESSURE.failed);
      expect(judged.repeated).toBeLessThanOrEqual(goal.repeated ?? judged.failed);
      expect(judged.lost).toBe(0);
    });
});

describe('a burst of 60, too short to find out all,', () => {
  test('fails none at a receiver without limits', () => {
    for (const [name, [plan]] of Object.entries(ROWS)) {
      if (/429|503|connections|about/.test(name)) continue;
      expect([name, judge(plan, { count: FEW }).failed]).toEqual([name, 0]);
    }
  });

  test('has at most a fifth refused by a receiver with limits', () => {
    for (const [name, [plan]] of Object.entries(ROWS)) {
      if (!/429|connections/.test(name)) continue;
      const { failed, lost } = judge(plan, { count: FEW });
      expect(failed).toBeLessThanOrEqual(1 / 5);
      expect(lost).toBe(0);
    }
  });
});

test('a receiver whose backends are three, one of them dead, fails a third and no more', () => {
  const plan = workers(20, 50, { losing: { every: 3, how: 'hangs' } });
  const { failed } = judge(plan, { count: MANY });
  expect(failed).toBeCloseTo(1 / 3, 2);
});

test('a fast receiver has 64 requests of four webhooks at once within 0.5 s', () => {
  for (const workMs of [2, 5])
    expect(judge(workers(1_000, workMs), { count: 4_000, webhooks: 4 }).wideAtMs).toBeLessThan(500);
});

describe('many webhooks that lead to one host', () => {
  test('use it as one does, and fail no more', () => {
    for (const plan of [workers(1, 50), workers(1, 100, { spread: 0.5 }), workers(10, 50, { pause })]) {
      const judged = judge(plan, { count: MANY, webhooks: 20 });
      expect(judged.used).toBeGreaterThanOrEqual(0.9);
      expect(judged.failed).toBeLessThanOrEqual(0.015);
    }
  });
});
