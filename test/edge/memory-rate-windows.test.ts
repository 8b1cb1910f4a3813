import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createMemoryRateWindows } from '../../src/edge/memory-rate-windows.ts';
import type { RateWindows } from '../../src/edge/rate-windows.ts';

/** How many of `hits` simultaneous requests are let through. */
async function allowed(windows: RateWindows, options: { id?: string; limit: number; hits: number }) {
  const { id = 'key', limit, hits } = options;
  const verdicts = await Promise.all(Array.from({ length: hits }, () => windows.hit(id, limit)));
  return verdicts.filter((verdict) => verdict.allowed).length;
}

describe('rate windows in memory', () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
  afterEach(() => void vi.useRealTimers());

  test('let 60 of 61 simultaneous requests through', async () => {
    expect(await allowed(createMemoryRateWindows(), { limit: 60, hits: 61 })).toBe(60);
  });

  test('begin with the first counted request and last 60 seconds, whatever comes in between', async () => {
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

  test('say the whole seconds that are left', async () => {
    const windows = createMemoryRateWindows();
    await windows.hit('key', 1);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    vi.advanceTimersByTime(500);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    vi.advanceTimersByTime(1_000);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 59 });
  });

  test('do not count a refused request, so that a raised limit leaves its full difference', async () => {
    const windows = createMemoryRateWindows();
    await allowed(windows, { limit: 5, hits: 50 });
    expect(await allowed(windows, { limit: 8, hits: 50 })).toBe(3);
  });

  test('apply a lowered limit at once', async () => {
    const windows = createMemoryRateWindows();
    await allowed(windows, { limit: 60, hits: 10 });
    expect(await allowed(windows, { limit: 10, hits: 1 })).toBe(0);
  });

  test('are apart for each id', async () => {
    const windows = createMemoryRateWindows();
    await allowed(windows, { id: 'a', limit: 1, hits: 5 });
    expect(await allowed(windows, { id: 'b', limit: 1, hits: 5 })).toBe(1);
  });

  test('hold no more ids than they may: the one not seen for longest is forgotten', async () => {
    const windows = createMemoryRateWindows({ maxIds: 2 });
    for (const id of ['a', 'b', 'a', 'c']) await windows.hit(id, 2);
    expect(await allowed(windows, { id: 'a', limit: 2, hits: 1 })).toBe(0);
    expect(await allowed(windows, { id: 'b', limit: 1, hits: 2 })).toBe(1);
  });
});
