import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { steadyClock, systemClock } from '../../src/base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../src/base/coordination/coordination.ts';
import { FuelError } from '../../src/base/errors.ts';
import { Standing } from '../../src/service/ops/standing.ts';
import { ProcessReport } from '../../src/service/process-report.ts';
import { fileCoordination } from '../support/engines/coordination.ts';
import { memoryLog } from '../support/service/api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const STARTED = Date.UTC(2026, 8, 3, 8);

beforeEach(() => void vi.useFakeTimers({ now: STARTED }));
afterEach(() => void vi.useRealTimers());

/** Starts a process, with a view of what others see of it. */
async function started(
  change: (coordination: Coordination) => Partial<Coordination> = () => ({}),
  onKnown: (standing: Standing) => void = () => undefined,
  directories: readonly string[] = ['main'],
) {
  const path = join(temporaryFolder(), 'control.db');
  const coordination = fileCoordination(path, systemClock);
  const logLines: Record<string, unknown>[] = [];
  const standing = new Standing();
  /** When it read the end of the log to join the others, in milliseconds since the start. */
  const joined: number[] = [];
  const report = new ProcessReport({
    coordination: { ...coordination, ...change(coordination) },
    store: {
      async head() {
        joined.push(Date.now() - STARTED);
        onKnown(standing);
        return 0;
      },
    },
    ...{ clock: systemClock, log: memoryLog(logLines), id: 'this', roles: ['api', 'webhooks'] },
    ...{ directories, standing },
  });
  onTestFinished(async () => {
    await report.stop();
    await coordination.close();
  });
  const live = () => coordination.live(PROCESS_MAX_AGE_MS);
  /** Returns the directory positions that others see, and when they were stored, in milliseconds since the start. */
  const seen = async () => (await live()).map((p) => [p.directoryPosition, p.seenAtMs - STARTED]);
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  await pass(1);
  const isKnown = () => standing.isKnown(steadyClock.now());
  return { report, standing, coordination, live, seen, pass, logLines, isKnown, joined };
}

test('a process that cannot report is unknown to the others after a while, and joins them again when it can', async () => {
  let fails = false;
  const { isKnown, joined, pass } = await started((coordination) => ({
    report: async (process) => {
      if (fails) throw new FuelError('STORE_UNAVAILABLE', 'gone');
      await coordination.report(process);
    },
  }));
  expect([isKnown(), joined.length]).toEqual([true, 1]);
  fails = true;
  await pass(PROCESS_MAX_AGE_MS - 2);
  expect(isKnown()).toBe(true);
  await pass(2);
  expect(isKnown()).toBe(false);
  fails = false;
  await pass(2_000);
  expect([isKnown(), joined.length]).toEqual([true, 2]);
});

test('a process that fails to read the end of the log when it joins tries again after its next report', async () => {
  let fails = true;
  const { joined, pass, standing, logLines } = await started(undefined, () => {
    if (fails) throw new TypeError('a fault');
  });
  await pass(1_000);
  expect([joined.length, standing.hasReached(0)]).toEqual([1, false]);
  expect(logLines).toEqual([expect.objectContaining({ level: 50 })]);
  fails = false;
  await pass(10_000);
  expect([joined.length, standing.hasReached(0), logLines.length]).toEqual([2, true, 1]);
});

test('others count on the process from when a report began: a slow one does not prolong that', async () => {
  const slow = Promise.withResolvers<void>();
  const { isKnown, joined, pass } = await started((coordination) => ({
    report: async (process) => {
      await coordination.report(process);
      await slow.promise;
    },
  }));
  await pass(4_000);
  slow.resolve();
  await pass(PROCESS_MAX_AGE_MS - 4_000 - 2);
  expect([isKnown(), joined]).toEqual([true, [4_001]]);
  await pass(1);
  expect(isKnown()).toBe(false);
});

test('a report that took as long as the others count on it was too late: the process joins them again', async () => {
  let waits: Promise<void> = Promise.resolve();
  const { joined, pass } = await started((coordination) => ({
    report: async (process) => {
      await waits;
      await coordination.report(process);
    },
  }));
  const late = Promise.withResolvers<void>();
  waits = late.promise;
  await pass(PROCESS_MAX_AGE_MS + 2_000);
  late.resolve();
  waits = Promise.resolve();
  await pass(0);
  expect(joined).toEqual([0, PROCESS_MAX_AGE_MS + 2_001].map((ms) => expect.closeTo(ms, -1)));
});

describe('a process', () => {
  test('reports itself at once', async () => {
    const { live } = await started();
    expect(await live()).toEqual([
      {
        id: 'this',
        pid: process.pid,
        host: hostname(),
        roles: ['api', 'webhooks'],
        startedAtMs: STARTED,
        seenAtMs: STARTED,
        directoryPosition: null,
      },
    ]);
  });

  test('reports every 2 s that it is alive', async () => {
    const { seen, pass } = await started();
    await pass(1_998);
    expect(await seen()).toEqual([[null, 0]]);
    await pass(1);
    expect(await seen()).toEqual([[null, 2_000]]);
    await pass(2_000);
    expect(await seen()).toEqual([[null, 4_000]]);
  });

  test('reports a move of its directory at once, but at most every 50 ms', async () => {
    const { report, seen, pass } = await started();
    await pass(99);
    report.moved('main', 5);
    await pass(0);
    expect(await seen()).toEqual([[5, 100]]);
    report.moved('main', 6);
    await pass(20);
    report.moved('main', 7);
    await pass(29);
    expect(await seen()).toEqual([[5, 100]]);
    await pass(1);
    expect(await seen()).toEqual([[7, 150]]);
  });

  test('reports a move at 50 ms that comes while the one before is being reported', async () => {
    let reports = 0;
    const stored = Promise.withResolvers<void>();
    const { report, seen, pass } = await started((coordination) => ({
      report: async (process) => {
        if (++reports === 2) await stored.promise;
        await coordination.report(process);
      },
    }));
    await pass(99);
    report.moved('main', 5);
    await pass(10);
    report.moved('main', 6);
    stored.resolve();
    await pass(39);
    expect(await seen()).toEqual([[5, 110]]);
    await pass(1);
    expect(await seen()).toEqual([[6, 150]]);
    await pass(2_000);
    expect(await seen()).toEqual([[6, 2_150]]);
  });

  test('is known to the others for as long as before when the time of day is corrected', async () => {
    const { isKnown, joined, pass } = await started();
    vi.setSystemTime(STARTED + 3_600_000);
    expect(isKnown()).toBe(true);
    await pass(2_000);
    vi.setSystemTime(STARTED - 3_600_000);
    await pass(2_000);
    expect([isKnown(), joined.length]).toEqual([true, 1]);
  });

  test('does not report the same position of its directory twice', async () => {
    const { report, seen, pass } = await started();
    report.moved('main', 5);
    await pass(99);
    const before = await seen();
    report.moved('main', 5);
    await pass(1_000);
    expect(await seen()).toEqual(before);
  });

  test('that ends is removed at once, and never reports again', async () => {
    const { report, live, pass } = await started();
    report.moved('main', 5);
    await report.stop();
    expect(await live()).toEqual([]);
    report.moved('main', 6);
    await pass(5_000);
    expect(await live()).toEqual([]);
  });

  test('reports one time after the other, however long each takes', async () => {
    const { promise: taken, resolve } = Promise.withResolvers<void>();
    let [open, most] = [0, 0];
    const { report, pass, seen } = await started((coordination) => ({
      report: async (process) => {
        most = Math.max(most, ++open);
        await taken;
        await coordination.report(process);
        open--;
      },
    }));
    report.moved('main', 5);
    await pass(200);
    expect(open).toBe(1);
    resolve();
    await pass(1);
    expect([most, (await seen())[0]?.[0]]).toEqual([1, 5]);
  });

  test('that ends while it reports is removed too', async () => {
    const { promise: told, resolve } = Promise.withResolvers<void>();
    const { report, live } = await started((coordination) => ({
      report: async (process) => {
        await told;
        await coordination.report(process);
      },
    }));
    const stopped = report.stop();
    resolve();
    await stopped;
    expect(await live()).toEqual([]);
    expect(vi.getTimerCount()).toBe(0); // a timer would keep the process alive
  });

  test('whose report failed retries it 2 s later, and logs so', async () => {
    let failures = 1;
    const { seen, pass, logLines } = await started((coordination) => ({
      report: (process) =>
        failures-- > 0
          ? Promise.reject(new FuelError('STORE_UNAVAILABLE', 'unavailable'))
          : coordination.report(process),
    }));
    expect(logLines).toEqual([expect.objectContaining({ level: 40 })]);
    expect(await seen()).toEqual([]);
    await pass(1_999);
    expect(await seen()).toEqual([[null, 2_000]]);
  });

  test('whose removal fails ends too, and logs so', async () => {
    const { report, logLines } = await started(() => ({
      removeProcess: () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'unavailable')),
    }));
    await report.stop();
    expect(logLines).toEqual([expect.objectContaining({ level: 40 })]);
  });
});

test('what a process must reach is judged again before it counts as known, and stays so once it has ended', async () => {
  const steps: boolean[] = [];
  const { report, standing, live, pass, isKnown } = await started(undefined, (now) =>
    steps.push(now.isKnown(steadyClock.now())),
  );
  await pass(1);
  expect([steps, isKnown(), standing.hasReached(0)]).toEqual([[false], true, true]);
  await report.stop();
  report.moved('main', 1);
  await pass(5_000);
  expect(await live()).toEqual([]);
});

test('a process is as far as the directory of it that is furthest behind, once all have a position', async () => {
  const { report, seen, pass } = await started(undefined, undefined, ['main', 'webhooks']);
  const at = async () => (await seen())[0]?.[0];
  report.moved('main', 10);
  await pass(100);
  expect(await at()).toBe(null);
  report.moved('webhooks', 9);
  await pass(100);
  expect(await at()).toBe(9);
  report.moved('webhooks', 11);
  await pass(100);
  expect(await at()).toBe(10);
});
