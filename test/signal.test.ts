import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Signal } from '../src/signal.ts';

/** A wakeUp, and whether its waiter has been woken. */
function waiting(timeoutMs: number) {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const wakeUp = new Signal();
  const woken = vi.fn<() => void>();
  const wait = (): Promise<void> => wakeUp.wait(timeoutMs).then(woken);
  return { wakeUp, woken, wait };
}

describe('a wakeUp', () => {
  test('wakes its waiter at once, and leaves no timer', async () => {
    const { wakeUp, woken, wait } = waiting(1_000);
    const waited = wait();
    await vi.advanceTimersByTimeAsync(10);
    expect(woken).not.toHaveBeenCalled();
    wakeUp.notify();
    await waited;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('wakes its waiter at once, without a warning of Node, where the time has passed already', async () => {
    const wakeUp = new Signal();
    const warnings: Error[] = [];
    const noted = (warning: Error): void => void warnings.push(warning);
    process.on('warning', noted);
    onTestFinished(() => void process.off('warning', noted));
    await wakeUp.wait(-5);
    await new Promise((resolve) => setImmediate(resolve)); // a warning is emitted a turn later
    expect(warnings).toEqual([]);
  });

  test('wakes its waiter after the time, and has not rung then', async () => {
    const { wakeUp, woken, wait } = waiting(1_000);
    void wait();
    await vi.advanceTimersByTimeAsync(999);
    expect(woken).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(woken).toHaveBeenCalledTimes(1);
    expect(wakeUp.isNotified).toBe(false);
  });

  test('remembers a notification without a waiter, until it is reset', async () => {
    const { wakeUp, woken, wait } = waiting(1_000);
    wakeUp.notify();
    expect(wakeUp.isNotified).toBe(true);
    await wait();
    await wait();
    expect(woken).toHaveBeenCalledTimes(2);
    wakeUp.reset();
    expect(wakeUp.isNotified).toBe(false);
    void wait();
    await vi.advanceTimersByTimeAsync(999);
    expect(woken).toHaveBeenCalledTimes(2);
  });

  test('remembers the notify that woke its waiter', async () => {
    const { wakeUp, wait } = waiting(1_000);
    const waited = wait();
    wakeUp.notify();
    await waited;
    expect(wakeUp.isNotified).toBe(true);
  });
});
