import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Bell } from '../src/signal.ts';

/** A bell, and whether its waiter has been woken. */
function waiting(timeoutMs: number) {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const bell = new Bell();
  const woken = vi.fn<() => void>();
  const wait = (): Promise<void> => bell.wait(timeoutMs).then(woken);
  return { bell, woken, wait };
}

describe('a bell', () => {
  test('wakes its waiter at once, and leaves no timer', async () => {
    const { bell, woken, wait } = waiting(1_000);
    const waited = wait();
    await vi.advanceTimersByTimeAsync(10);
    expect(woken).not.toHaveBeenCalled();
    bell.ring();
    await waited;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('wakes its waiter at once, without a warning of Node, where the time has passed already', async () => {
    const bell = new Bell();
    const warnings: Error[] = [];
    const noted = (warning: Error): void => void warnings.push(warning);
    process.on('warning', noted);
    onTestFinished(() => void process.off('warning', noted));
    await bell.wait(-5);
    await new Promise((resolve) => setImmediate(resolve)); // a warning is emitted a turn later
    expect(warnings).toEqual([]);
  });

  test('wakes its waiter after the time, and has not rung then', async () => {
    const { bell, woken, wait } = waiting(1_000);
    void wait();
    await vi.advanceTimersByTimeAsync(999);
    expect(woken).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(woken).toHaveBeenCalledTimes(1);
    expect(bell.hasRung).toBe(false);
  });

  test('remembers a ring that nobody waited for, until it is reset', async () => {
    const { bell, woken, wait } = waiting(1_000);
    bell.ring();
    expect(bell.hasRung).toBe(true);
    await wait();
    await wait();
    expect(woken).toHaveBeenCalledTimes(2);
    bell.reset();
    expect(bell.hasRung).toBe(false);
    void wait();
    await vi.advanceTimersByTimeAsync(999);
    expect(woken).toHaveBeenCalledTimes(2);
  });

  test('remembers the ring that woke its waiter', async () => {
    const { bell, wait } = waiting(1_000);
    const waited = wait();
    bell.ring();
    await waited;
    expect(bell.hasRung).toBe(true);
  });
});
