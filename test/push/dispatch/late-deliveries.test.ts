import { expect, test } from 'vitest';
import { LateDeliveries } from '../../../src/push/dispatch/late-deliveries.ts';
import { longestWaitMs } from '../../../src/push/dispatch/retry-schedule.ts';
import { claimFrom, claimOptions, newDelivery, retryAt } from '../../support/deliveries/deliveries.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { memoryLog } from '../../support/service/api.ts';

const HOUR_MS = 3_600_000;

/** A process that looks for late deliveries; `set` sets the clock, `pass` lets time pass. */
function looking() {
  const { clock, openQueue } = openPushStores();
  const queue = openQueue();
  const elapsed = new FakeClock();
  const lines: Record<string, unknown>[] = [];
  const start = () =>
    new LateDeliveries({
      ...{ queue, clock, elapsed, leaseMs: 5_000, longestWaitMs: longestWaitMs([30_000, 150_000]) },
      ...{ log: memoryLog(lines), signal: new AbortController().signal },
    });
  const pass = (ms: number): void => {
    clock.advance(ms);
    elapsed.advance(ms);
  };
  const claim = () => claimFrom(queue, claimOptions(clock.now()));
  /** The first delivery fails its first attempt: the second one follows 30 s later. */
  const failOnce = async (): Promise<void> => {
    await queue.enqueue([newDelivery(1, { createdAtMs: clock.now() })]);
    const [claimed] = await claim();
    if (claimed === undefined) throw new Error('nothing was claimed');
    await queue.report([retryAt(claimed, clock.now(), clock.now() + 30_000)]);
  };
  const dueInMs = async () => ((await queue.find(newDelivery(1).id))?.dueAtMs ?? Number.NaN) - clock.now();
  return { clock, queue, start, pass, claim, failOnce, dueInMs, lines };
}

test('an attempt keeps its time where the clock is set back while the process runs', async () => {
  const { clock, start, pass, failOnce, dueInMs, lines } = looking();
  const late = start();
  await late.release();
  await failOnce();
  pass(4_000);
  clock.advance(-HOUR_MS);
  await late.release();
  expect(await dueInMs()).toBe(26_000);
  expect(lines).toMatchObject([{ level: 40, deliveries: 1 }]);
  await late.release();
  expect(lines).toHaveLength(1);
});

test('an attempt that was put off by a clock that nobody knows any more is due', async () => {
  const { clock, start, failOnce, dueInMs } = looking();
  await failOnce();
  clock.advance(-HOUR_MS);
  await start().release();
  expect(await dueInMs()).toBe(0);
});

test('an attempt that waits as long as one may is left alone', async () => {
  const { clock, start, failOnce, dueInMs } = looking();
  await failOnce();
  clock.advance(-300_000);
  await start().release();
  expect(await dueInMs()).toBe(330_000);
});

test('the claim of a process that died while the clock was ahead is over once it was seen for as long as it lasts', async () => {
  const { clock, queue, start, pass, claim } = looking();
  await queue.enqueue([newDelivery(1)]);
  await claim();
  clock.advance(-HOUR_MS);
  const late = start();
  await late.release();
  pass(4_999);
  await late.release();
  expect(await claim()).toEqual([]);
  pass(1);
  await late.release();
  expect(await claim()).toMatchObject([{ attemptNumber: 1 }]);
});

test('a process whose clock is ahead keeps its claims as long as it reports each in time', async () => {
  const { clock, queue, start, pass, claim, lines } = looking();
  const late = start();
  for (let n = 1; n < 5; n++) {
    await queue.enqueue([newDelivery(n, { createdAtMs: clock.now() })]);
    clock.advance(HOUR_MS);
    const [claimed] = await claim();
    clock.advance(-HOUR_MS);
    await late.release();
    pass(2_000);
    if (claimed === undefined) throw new Error('it was taken away');
    await queue.report([{ kind: 'failed', ...claimed, attempt: null, reason: 'off' }]);
  }
  expect(lines).toEqual([]);
});
