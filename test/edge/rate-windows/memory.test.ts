import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createMemoryRateWindows } from '../../../src/edge/rate-windows/memory.ts';
import { allowed, rateWindowsContract } from '../../contracts/rate-windows.contract.ts';

describe('rate windows in memory', () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
  afterEach(() => void vi.useRealTimers());

  rateWindowsContract(async () => ({
    windows: createMemoryRateWindows(),
    pass: async (ms) => void vi.advanceTimersByTime(ms),
  }));

  test('end to the millisecond', async () => {
    const windows = createMemoryRateWindows();
    await windows.hit('key', 2);
    vi.advanceTimersByTime(59_000);
    await windows.hit('key', 2);
    expect(await windows.hit('key', 2)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    vi.advanceTimersByTime(999);
    expect(await windows.hit('key', 2)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    vi.advanceTimersByTime(1);
    expect(await allowed(windows, { limit: 2, hits: 3 })).toBe(2);
  });

  test('end on time also where the process is too busy for its timers', async () => {
    const windows = createMemoryRateWindows();
    await windows.hit('key', 1);
    vi.setSystemTime(1_059_999);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    vi.setSystemTime(1_060_000);
    expect(await windows.hit('key', 1)).toEqual({ allowed: true });
  });

  test('say the whole seconds that are left, begun ones too', async () => {
    const windows = createMemoryRateWindows();
    await windows.hit('key', 1);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    vi.advanceTimersByTime(500);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    vi.advanceTimersByTime(1_000);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 59 });
  });

  test('hold no more ids than they may: the one not seen for longest is forgotten', async () => {
    const windows = createMemoryRateWindows({ maxIds: 2 });
    for (const id of ['a', 'b', 'a', 'c']) await windows.hit(id, 2);
    expect(await allowed(windows, { id: 'a', limit: 2, hits: 1 })).toBe(0);
    expect(await allowed(windows, { id: 'b', limit: 1, hits: 2 })).toBe(1);
  });
});
