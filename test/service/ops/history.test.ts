import { expect, test } from 'vitest';
import { AttemptHistory, FigureHistory } from '../../../src/service/ops/history.ts';

const MINUTE_MS = 60_000;
const START_MS = 1_000 * MINUTE_MS;

function historyAt(ms: number) {
  const clock = { ms };
  const history = new AttemptHistory(() => clock.ms);
  const attempted = (kind: string, ...durationsMs: readonly number[]): void =>
    history.add({
      attempts: [{ outcome: kind === '' ? 'delivered' : 'failed', kind, count: durationsMs.length }],
      durationsSeconds: Float64Array.from(durationsMs, (each) => each / 1_000),
      redeliveries: 0,
      inFlight: 0,
    });
  return { history, clock, attempted };
}

test('attempts are counted in the minute in which they ended, also minutes without one are there', () => {
  const { history, clock, attempted } = historyAt(START_MS + 10);
  attempted('', 10, 20);
  attempted('timeout', 500);
  clock.ms += 2 * MINUTE_MS;
  attempted('status', 5);
  attempted('status', 5);
  expect(history.minutes()).toMatchObject([
    { atMs: START_MS, delivered: 2, failed: { timeout: 1 } },
    { atMs: START_MS + MINUTE_MS, delivered: 0, failed: {}, medianMs: null, p95Ms: null },
    { atMs: START_MS + 2 * MINUTE_MS, delivered: 0, failed: { status: 2 } },
  ]);
});

test('the median and the 95th percentile are right to a quarter', () => {
  const { history, attempted } = historyAt(START_MS);
  attempted('', ...Array.from({ length: 90 }, () => 40), ...Array.from({ length: 10 }, () => 300));
  const [minute] = history.minutes();
  for (const [found, exact] of [
    [minute?.medianMs, 40],
    [minute?.p95Ms, 300],
  ] as const) {
    expect(found).toBeGreaterThanOrEqual(exact);
    expect(found).toBeLessThanOrEqual(exact * 1.25);
  }
});

test('an hour is kept, of a process that runs for longer', () => {
  const { history, clock, attempted } = historyAt(START_MS);
  for (let minute = 0; minute < 180; minute++) {
    attempted('', 1);
    clock.ms += MINUTE_MS;
  }
  const minutes = history.minutes();
  expect(minutes).toHaveLength(60);
  expect(minutes.at(-1)?.atMs).toBe(clock.ms);
});

test('readings of shared figures are kept for an hour, in their order', () => {
  const history = new FigureHistory();
  for (let atMs = 0; atMs < 1_000; atMs++) history.add({ atMs, lag: {}, pending: null });
  const readings = history.readings();
  expect([readings.length, readings[0]?.atMs, readings.at(-1)?.atMs]).toEqual([240, 760, 999]);
});
