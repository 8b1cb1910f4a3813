import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Signal } from '../../src/base/signal.ts';

/** A signal, and whether its waiter has been woken. */
function waiting(timeoutMs: number) {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const signal = new Signal();
  const woken = vi.fn<() => void>();
  const wait = (): Promise<void> => signal.wait(timeoutMs).then(woken);
  return { signal, woken, wait };
}

describe('a signal', () => {
  test('wakes its waiter at once, and leaves no timer', async () => {
    const { signal, woken, wait } = waiting(1_000);
    const waited = wait();
    await vi.advanceTimersByTimeAsync(10);
    expect(woken).not.toHaveBeenCalled();
    signal.notify();
    await waited;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('wakes its waiter at once, without a warning of Node, where the time has passed already', async () => {
    const signal = new Signal();
    const warnings: Error[] = [];
    const noted = (warning: Error): void => void warnings.push(warning);
    process.on('warning', noted);
    onTestFinished(() => void process.off('warning', noted));
    await signal.wait(-5);
    await new Promise((resolve) => setImmediate(resolve)); // a warning is emitted a turn later
    expect(warnings).toEqual([]);
  });

  test('wakes its waiter after the time, and is not notified then', async () => {
    const { signal, woken, wait } = waiting(1_000);
    void wait();
    await vi.advanceTimersByTimeAsync(999);
    expect(woken).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(woken).toHaveBeenCalledTimes(1);
    expect(signal.isNotified).toBe(false);
  });

  test('remembers a notification that nobody waited for, until it is reset', async () => {
    const { signal, woken, wait } = waiting(1_000);
    signal.notify();
    expect(signal.isNotified).toBe(true);
    await wait();
    await wait();
    expect(woken).toHaveBeenCalledTimes(2);
    signal.reset();
    expect(signal.isNotified).toBe(false);
    void wait();
    await vi.advanceTimersByTimeAsync(999);
    expect(woken).toHaveBeenCalledTimes(2);
  });

  test('remembers the notification that woke its waiter', async () => {
    const { signal, wait } = waiting(1_000);
    const waited = wait();
    signal.notify();
    await waited;
    expect(signal.isNotified).toBe(true);
  });
});
