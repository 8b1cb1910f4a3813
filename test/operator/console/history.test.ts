import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { AttemptHistory } from '../../../src/operator/console/figures/history.ts';
import type { SendResult } from '../../../src/push/sender/timed-send.ts';
import { deliveryMetrics } from '../../../src/service/ops/delivery-metrics.ts';

const MINUTE_MS = 60_000;
const START_MS = 1_000 * MINUTE_MS;

/** A history of what a thread's counters say, by a clock that is set. */
function historyAt(ms: number) {
  const clock = { ms };
  const history = new AttemptHistory(() => clock.ms);
  const registry = new Registry();
  const metrics = deliveryMetrics(registry);
  const attempted = async (kind: string, ...durationsMs: readonly number[]): Promise<void> => {
    for (const durationMs of durationsMs) {
      const outcome = kind === '' ? { ok: true } : { ok: false, kind };
      metrics.attempting();
      metrics.attempted({ cycle: 1, attemptNumber: 1 }, { outcome, durationMs } as SendResult, {});
    }
    history.take(await registry.getMetricsAsJSON());
  };
  return { history, clock, attempted };
}

test('attempts are counted in the minute in which they ended, and minutes without attempts are included', async () => {
  const { history, clock, attempted } = historyAt(START_MS + 10);
  await attempted('', 10, 20);
  await attempted('timeout', 500);
  clock.ms += 2 * MINUTE_MS;
  await attempted('status', 5);
  await attempted('status', 5);
  expect(history.minutes()).toMatchObject([
    { atMs: START_MS, delivered: 2, failed: 1 },
    { atMs: START_MS + MINUTE_MS, delivered: 0, failed: 0, medianMs: null, p95Ms: null },
    { atMs: START_MS + 2 * MINUTE_MS, delivered: 0, failed: 2 },
  ]);
});

test('the median and the 95th percentile are those of the minute alone, within a bucket of the metric', async () => {
  const { history, clock, attempted } = historyAt(START_MS);
  await attempted('', ...Array.from({ length: 90 }, () => 40), ...Array.from({ length: 10 }, () => 300));
  clock.ms += MINUTE_MS;
  await attempted('timeout', 700, 5_000);
  const [first, second] = history.minutes();
  expect(first?.medianMs).toBeGreaterThan(25);
  expect(first?.medianMs).toBeLessThanOrEqual(50);
  expect(first?.p95Ms).toBeGreaterThan(200);
  expect(first?.p95Ms).toBeLessThanOrEqual(300);
  expect(second?.medianMs).toBe(750);
  expect(second?.p95Ms).toBe(1_000);
});

test('a quantile is between the bounds of its bucket, also if nothing was faster', async () => {
  const { history, attempted } = historyAt(START_MS);
  await attempted('', 65);
  expect(history.minutes()[0]).toMatchObject({ medianMs: 75, p95Ms: 97.5 });
});

test('only the last hour of a process is kept', async () => {
  const { history, clock, attempted } = historyAt(START_MS);
  for (let minute = 0; minute < 180; minute++) {
    await attempted('', 1);
    clock.ms += MINUTE_MS;
  }
  const minutes = history.minutes();
  expect(minutes).toHaveLength(60);
  expect(minutes.at(-1)?.atMs).toBe(clock.ms);
});
