import { hostname } from 'node:os';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../src/base/coordination/coordination.ts';
import { FuelError } from '../../src/base/errors.ts';
import { world } from '../../src/base/world.ts';
import { ProcessReport } from '../../src/service/process-report.ts';
import { memoryCoordination } from '../support/engines/coordination.ts';
import { memoryLog } from '../support/service/api.ts';

const STARTED = Date.UTC(2026, 8, 3, 8);

beforeEach(() => {
  vi.useFakeTimers({ now: STARTED });
  vi.spyOn(world, 'sleep').mockImplementation(sleepByTimer as typeof world.sleep);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Sleeps by the timers that the test moves. */
function sleepByTimer(ms: number, _: undefined, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal.aborted) return Promise.reject(signal.reason);
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    reject(signal.reason);
  });
  return promise;
}

/** Starts a process, with a view of what others see of it. */
async function started(change: (coordination: Coordination) => Partial<Coordination> = () => ({})) {
  const coordination = memoryCoordination(systemClock);
  const logLines: Record<string, unknown>[] = [];
  const report = new ProcessReport({
    coordination: { ...coordination, ...change(coordination) },
    clock: systemClock,
    log: memoryLog(logLines),
    id: 'this',
    roles: ['api', 'webhooks'],
  });
  onTestFinished(async () => {
    await report.stop();
    await coordination.close();
  });
  const live = () => coordination.live(PROCESS_MAX_AGE_MS);
  const seen = async () => (await live()).map(({ seenAtMs }) => seenAtMs - STARTED);
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  await pass(1);
  return { report, live, seen, pass, logLines };
}

test('a process reports itself at once, as one that is starting, and at once when it is ready', async () => {
  const { live, pass, report } = await started();
  const self = { id: 'this', pid: process.pid, host: hostname(), roles: ['api', 'webhooks'] };
  expect(await live()).toEqual([{ ...self, startedAtMs: STARTED, seenAtMs: STARTED, isReady: false }]);
  await pass(99);
  report.ready();
  await pass(1);
  expect(await live()).toMatchObject([{ isReady: true, seenAtMs: STARTED + 100 }]);
});

test('a process reports every two seconds, and is gone when it has stopped', async () => {
  const { seen, pass, report, live } = await started();
  for (const atMs of [2_000, 4_000]) {
    await pass(2_000);
    expect(await seen()).toEqual([expect.closeTo(atMs, -1)]);
  }
  await report.stop();
  expect(await live()).toEqual([]);
});

test('a process that becomes ready during a report reports that next', async () => {
  const slow = Promise.withResolvers<void>();
  const { report, pass, live } = await started((coordination) => ({
    async report(self) {
      await slow.promise;
      await coordination.report(self);
    },
  }));
  report.ready();
  slow.resolve();
  await pass(1);
  expect(await live()).toMatchObject([{ isReady: true }]);
});

test('a report that fails is logged, and repeated two seconds later', async () => {
  let fails = true;
  const { live, pass, logLines } = await started((coordination) => ({
    async report(self) {
      if (fails) throw new FuelError('STORE_UNAVAILABLE', 'gone');
      await coordination.report(self);
    },
  }));
  expect([await live(), logLines]).toEqual([[], [expect.objectContaining({ level: 40 })]]);
  fails = false;
  await pass(2_000);
  expect(await live()).toHaveLength(1);
});

test('a report that cannot be removed at the end is logged, and ends nothing', async () => {
  const { report, logLines } = await started(() => ({
    removeProcess: () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'gone')),
  }));
  await report.stop();
  expect(logLines.map(({ msg }) => msg)).toEqual([
    'the process report could not be removed at the end; it expires after 6 s',
  ]);
});
