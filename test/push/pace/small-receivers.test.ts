import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/customers/sample/random.ts';
import { type LaneResult, PacedRun } from '../../support/deliveries/paced-run.ts';
import { type ReceiverPlan, SimulatedReceiver } from '../../support/deliveries/simulated-receiver.ts';

function seeded(seed: number): () => number {
  const random = new Random(seed);
  return () => random.next();
}

const URL_OF_ALL = 'https://receiver.example/hook';
const EACH = 150;
/** The time allowed for growing from one to full width. No use of the receiver's capacity is required during it. */
const GROWING_MS = 2_000;

const ms = (min: number, max: number) => fc.integer({ min, max });
const serial = fc.record({ workers: fc.constant(1), workMs: ms(2, 300), jitter: fc.constantFrom(0, 0.1) });
const workers = fc.record({ workers: ms(2, 16), workMs: ms(5, 200), jitter: fc.constantFrom(0, 0.2) });
const closing = fc.record({
  workers: ms(1, 8),
  workMs: ms(5, 120),
  handshakeMs: ms(0, 50),
  closes: fc.constant(true),
});
const handshakes = fc.record({ workers: fc.constant(1), workMs: fc.constant(1), handshakeMs: ms(10, 100) });
const pausing = fc.record({
  workers: ms(1, 10),
  workMs: ms(5, 50),
  pause: fc.record({ everyMs: ms(5_000, 20_000), forMs: ms(100, 350) }),
});
const cold = fc.record({ workers: ms(1, 8), workMs: ms(5, 50), coldMs: ms(100, 450) });
const bucket = fc
  .record({ workMs: ms(1, 20), perSecond: ms(1, 20), windowMs: fc.constantFrom(1_000, 10_000, 60_000) })
  .map(({ workMs, perSecond, windowMs }) => ({
    workers: 8,
    workMs,
    window: { size: Math.max(1, Math.min(100, (perSecond * windowMs) / 1000)), windowMs },
  }));
const queueing = fc.record({ workers: ms(1, 4), workMs: ms(10, 60), queue: ms(4, 16) });

function burst(
  plan: ReceiverPlan,
  seed: number,
  { each = EACH, areNew = false } = {},
): { readonly result: LaneResult; readonly used: number } {
  const options = {
    receivers: { [URL_OF_ALL]: plan },
    lanes: { a: URL_OF_ALL },
    each,
    areNew,
    random: seeded(seed),
  };
  const result = new PacedRun(options).run().of('a');
  const idealMs = (1000 * each) / new SimulatedReceiver(plan, seeded(seed)).perSecond;
  return { result, used: idealMs / Math.max(idealMs, result.firstPassMs - GROWING_MS) };
}

describe('a burst to a receiver that answers in time at its own pace', () => {
  for (const [what, plans] of Object.entries({ serial, workers, closing, handshakes, pausing, cold }))
    test(`is delivered at the first attempt, with at least 0.75 of what it can do: ${what}`, () => {
      fc.assert(
        fc.property(plans, fc.integer(), (plan, seed) => {
          const { result, used } = burst(plan, seed);
          expect(result).toMatchObject({ delivered: EACH, failed: 0 });
          expect(result.firstFailed).toBeLessThanOrEqual(('pause' in plan ? 0.15 : 0.1) * EACH);
          expect(used).toBeGreaterThanOrEqual(0.75);
        }),
        { numRuns: 25 },
      );
    });

  for (const [what, plans] of Object.entries({ bucket, queueing }))
    test(`meets few refusals, and no delivery three: ${what}`, () => {
      fc.assert(
        fc.property(plans, fc.integer(), (plan, seed) => {
          const { result } = burst(plan, seed);
          expect(result).toMatchObject({ delivered: EACH, failed: 0 });
          expect(result.firstFailed).toBeLessThanOrEqual(0.15 * EACH);
          expect(result.mostRefusals).toBeLessThan(3);
        }),
        { numRuns: 25 },
      );
    });
});

test('a receiver that answers 429 above its rate is used by at least 0.65 of it, also just after it was enabled', () => {
  fc.assert(
    fc.property(bucket, fc.integer(), fc.boolean(), (plan, seed, areNew) => {
      const { result, used } = burst(plan, seed, { each: 2 * EACH, areNew });
      expect(result.firstFailed).toBeLessThanOrEqual(0.15 * 2 * EACH);
      expect(used).toBeGreaterThanOrEqual(0.65);
    }),
    { numRuns: 50 },
  );
});

test('a receiver that errs now and then whatever is under way is used by at least 0.6 of what it can do', () => {
  const plans = fc.record({ workers: ms(2, 16), workMs: ms(20, 100), erring: fc.constantFrom(0.02, 0.05) });
  fc.assert(
    fc.property(plans, fc.integer(), (plan, seed) => {
      const { result, used } = burst(plan, seed, { each: 4 * EACH });
      expect(result.firstFailed).toBeLessThanOrEqual(2 * plan.erring * 4 * EACH);
      expect(used).toBeGreaterThanOrEqual(0.6);
    }),
    { numRuns: 25 },
  );
});

test('a receiver that refuses now and then without asking to wait gets its next request within a second', () => {
  const refusing = fc.record({ share: fc.constantFrom(0.01, 0.05), status: fc.constantFrom(429, 503) });
  const plans = fc.record({ workers: ms(1, 16), workMs: ms(1, 100), refusing });
  fc.assert(
    fc.property(plans, fc.integer(), (plan, seed) => {
      const { startsMs, firstPassMs } = burst(plan, seed).result;
      const starts = startsMs.filter((startMs) => startMs <= firstPassMs);
      for (const [n, startMs] of starts.entries()) expect(startMs - (starts[n - 1] ?? 0)).toBeLessThan(1_000);
    }),
    { numRuns: 50 },
  );
});

test('a receiver that takes 300 ms whatever is under way is told from one that works on one after the other', () => {
  const firstPassMs = (count: number) => burst({ workers: count, workMs: 300 }, 1).result.firstPassMs;
  expect(firstPassMs(1_000)).toBeLessThan(EACH * 300 * 0.25);
  expect(firstPassMs(1)).toBeLessThan(EACH * 300 * 1.05);
});

describe('webhooks that lead to one host', () => {
  const lanes = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`lane${n}`, `${URL_OF_ALL}/${n}`]));

  test('share what it can do: a receiver with one worker fails none of twenty webhooks', () => {
    const receivers = { [URL_OF_ALL]: { workers: 1, workMs: 50 } };
    const run = new PacedRun({ receivers, lanes, each: 20, random: seeded(1) }).run();
    for (const result of run.results.values()) expect(result).toMatchObject({ delivered: 20, requests: 20 });
  });

  test('take turns: one with a large backlog does not delay the others', () => {
    const receivers = { [URL_OF_ALL]: { workers: 1, workMs: 50 } };
    const run = new PacedRun({ receivers, lanes, each: 20, random: seeded(1) }).run();
    const firstMs = [...run.results.values()].map(({ startsMs }) => startsMs[0]);
    expect(Math.max(...firstMs.map((startMs) => startMs ?? Infinity))).toBeLessThan(20 * 50 * 2);
  });
});
