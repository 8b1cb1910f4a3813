import { expect, onTestFinished, test, vi } from 'vitest';
import { removeHourly } from '../../../src/base/time/hourly.ts';
import { unavailable } from '../../support/deliveries/push-machine.ts';
import { memoryLog } from '../../support/service/api.ts';

const HOUR_MS = 3_600_000;

/** A removal on a clock that tests move; `calls` has the times at which it ran. */
function start() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  vi.setSystemTime(Date.UTC(2026, 8, 3, 8));
  const stopping = new AbortController();
  onTestFinished(() => {
    stopping.abort();
    vi.useRealTimers();
  });
  const lines: Record<string, unknown>[] = [];
  const calls: number[] = [];
  const state = { failing: false, left: 0, waitsFor: Promise.resolve() };
  const remove = async () => {
    calls.push(Date.now());
    if (state.failing) throw unavailable();
    await state.waitsFor;
    return state.left;
  };
  removeHourly('things', remove, { log: memoryLog(lines), signal: stopping.signal });
  return { stopping, lines, calls, state, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

test('an hourly removal runs once in each hour, and ends with the service', async () => {
  const { stopping, calls, state, lines, pass } = start();
  const startMs = Date.now();
  expect(calls).toEqual([]);
  state.left = 7;
  await pass(3 * HOUR_MS);
  expect(calls.map((atMs) => Math.floor((atMs - startMs) / HOUR_MS))).toEqual([0, 1, 2]);
  expect(lines).toMatchObject(calls.map(() => ({ removed: 7 })));
  stopping.abort();
  expect(vi.getTimerCount()).toBe(0); // a timer would keep the process alive
  await pass(3 * HOUR_MS);
  expect(calls).toHaveLength(3);
});

test('an hourly removal that fails is reported and tried again in the next hour', async () => {
  const { calls, state, lines, pass } = start();
  state.failing = true;
  await pass(HOUR_MS);
  expect(lines).toMatchObject([{ level: 40, err: { code: 'STORE_UNAVAILABLE' } }]);
  state.failing = false;
  await pass(HOUR_MS);
  expect(calls).toHaveLength(2);
  expect(lines).toHaveLength(1);
});

test('an hourly removal that takes longer than an hour is not begun a second time meanwhile', async () => {
  const { calls, state, pass } = start();
  const slow = Promise.withResolvers<void>();
  state.waitsFor = slow.promise;
  await pass(3 * HOUR_MS);
  expect(calls).toHaveLength(1);
  slow.resolve();
  await pass(HOUR_MS);
  expect(calls).toHaveLength(2);
});

test('an hourly removal that is ended with the service reports nothing, even if it fails because of that', async () => {
  const { stopping, lines, state, pass } = start();
  const slow = Promise.withResolvers<void>();
  state.waitsFor = slow.promise;
  await pass(HOUR_MS);
  stopping.abort();
  slow.reject(unavailable());
  await pass(HOUR_MS);
  expect(lines).toEqual([]);
});
