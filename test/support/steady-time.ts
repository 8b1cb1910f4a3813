import { onTestFinished, vi } from 'vitest';
import { world } from '../../src/base/world.ts';

/** Stops the steady time until the test ends. Returns a function that moves it ahead. */
export function stoppedTime(): (ms: number) => void {
  let nowMs = world.steadyMs();
  const steady = vi.spyOn(world, 'steadyMs').mockImplementation(() => nowMs);
  onTestFinished(() => steady.mockRestore());
  return (ms) => {
    nowMs += ms;
  };
}

/**
 * Makes the core's waits take no time until the test ends: once everything else has had its turn, the next timer is due. The
 * steady clock moves with the timers. This is not for tests that wait for another process, a thread or a server.
 */
export function passingTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  vi.setTimerTickMode('nextTimerAsync');
  const sleep = vi.spyOn(world, 'sleep').mockImplementation(async (ms, value, { signal } = {}) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => resolve(), { once: true });
    if (signal?.aborted !== true) await promise;
    clearTimeout(timer);
    signal?.throwIfAborted();
    return value as never;
  });
  const steady = vi.spyOn(world, 'steadyMs').mockImplementation(() => performance.now());
  onTestFinished(() => {
    sleep.mockRestore();
    steady.mockRestore();
    vi.useRealTimers();
  });
}
