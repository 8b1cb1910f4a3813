import { expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { Log } from '../../../src/base/log.ts';
import { startNightly } from '../../../src/operator/serve/nightly.ts';
import type { Night } from '../../../src/operator/verify/verify-last-days.ts';
import { memoryCoordination } from '../../support/engines/coordination.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const HOUR_MS = 3_600_000;

function start() {
  const clock = new FakeClock();
  const coordination = memoryCoordination(clock);
  onTestFinished(() => coordination.close());
  const nights: (() => Promise<void>)[] = [];
  const expressions: string[] = [];
  const warnings: string[] = [];
  const faults: string[] = [];
  const said = (lines: string[]) => (_: unknown, message: string) => void lines.push(message);
  const log = { warn: said(warnings), error: said(faults) } as unknown as Log;
  const repaired: unknown[] = [];
  const destroyed: string[] = [];
  const process = (holder: string, verify: (signal: AbortSignal) => Promise<Night>) =>
    startNightly({
      coordination,
      holder,
      log,
      verify,
      onRepaired: (counts) => void repaired.push(counts),
      schedule: (expression, work) => {
        expressions.push(expression);
        nights.push(work);
        return { destroy: () => void destroyed.push(holder) };
      },
    });
  return { clock, coordination, nights, expressions, warnings, faults, repaired, destroyed, process };
}

test('every night one of the processes verifies, at a minute after three', async () => {
  const { clock, nights, expressions, repaired, process } = start();
  let runs = 0;
  const verify = async () => ({ accounts: 0, view: ++runs, deliveries: 0, damage: [] });
  process('one', verify);
  process('other', verify);
  for (const expression of expressions) expect(expression).toMatch(/^([0-9]|[1-5][0-9]) 3 \* \* \*$/);
  await nights[0]?.();
  clock.advance(HOUR_MS);
  await nights[1]?.();
  expect(repaired).toEqual([{ accounts: 0, view: 1, deliveries: 0, damage: [] }]);
  clock.advance(23 * HOUR_MS);
  await nights[1]?.();
  expect(repaired).toHaveLength(2);
});

test.each([
  ['a warning where a store is away', 'STORE_UNAVAILABLE', 1, 0],
  ['an error where it is damaged', 'STORE_DAMAGED', 0, 1],
] as const)('a night that fails is left to the next one, with %s', async (_, code, warned, failed) => {
  const { nights, warnings, faults, repaired, process } = start();
  process('one', () => Promise.reject(new FuelError(code, 'events.db')));
  await nights[0]?.();
  expect(repaired).toEqual([]);
  const line = 'the last two days could not be verified; trying next night';
  expect([warnings, faults]).toEqual([Array(warned).fill(line), Array(failed).fill(line)]);
});

test('a verification under way is stopped with the process, without a warning', async () => {
  const { nights, warnings, process } = start();
  const begun = Promise.withResolvers<void>();
  const nightly = process('one', (signal) => {
    begun.resolve();
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  const night = nights[0]?.();
  await begun.promise;
  await nightly.stop();
  await night;
  expect(warnings).toEqual([]);
});

test('a process that stops plans no further night, and has stopped when the one under way has', async () => {
  const { nights, destroyed, repaired, process } = start();
  const [begun, finish] = [Promise.withResolvers<AbortSignal>(), Promise.withResolvers<void>()];
  const nightly = process('one', async (signal) => {
    begun.resolve(signal);
    await finish.promise;
    return { accounts: 0, view: 1, deliveries: 0, damage: [] };
  });
  const night = nights[0]?.();
  const signal = await begun.promise;
  const steps: string[] = [];
  const stopped = nightly.stop().then(() => steps.push('stopped'));
  await new Promise(setImmediate);
  expect([destroyed, signal.aborted, steps]).toEqual([['one'], true, []]);
  finish.resolve();
  await stopped;
  await night;
  expect(repaired).toHaveLength(1);
});

test('a process that stops while it asks for its turn verifies nothing', async () => {
  const { nights, repaired, warnings, process } = start();
  let verified = false;
  const nightly = process('one', async () => {
    verified = true;
    return { accounts: 0, view: 0, deliveries: 0, damage: [] };
  });
  const night = nights[0]?.();
  await nightly.stop();
  await night;
  expect([verified, repaired, warnings]).toEqual([false, [], []]);
});
