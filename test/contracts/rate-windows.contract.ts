import { expect, test } from 'vitest';
import type { RateWindows } from '../../src/pull/edge/rate-windows/rate-windows.ts';

export interface RateWindowsUnderTest {
  readonly windows: RateWindows;
  /** Lets this much time pass by the clock of the windows. */
  readonly pass: (ms: number) => Promise<void>;
}

/** Returns how many of `hits` simultaneous requests are let through. */
export async function allowed(
  windows: RateWindows,
  options: { readonly id?: string; readonly limit: number; readonly hits: number },
): Promise<number> {
  const { id = 'key', limit, hits } = options;
  const verdicts = await Promise.all(Array.from({ length: hits }, () => windows.hit(id, limit)));
  return verdicts.filter((verdict) => verdict.allowed).length;
}

/** The contract of rate windows. Real time may pass too, at most a second in a test. */
export function rateWindowsContract(open: () => Promise<RateWindowsUnderTest>): void {
  test('60 of 61 simultaneous requests are let through', async () => {
    const { windows } = await open();
    expect(await allowed(windows, { limit: 60, hits: 61 })).toBe(60);
  });

  test('a window begins with the first counted request and lasts 60 seconds, whatever comes in between', async () => {
    const { windows, pass } = await open();
    await windows.hit('key', 2);
    await pass(58_000);
    await windows.hit('key', 2);
    expect(await allowed(windows, { limit: 2, hits: 3 })).toBe(0);
    await pass(2_000);
    expect(await allowed(windows, { limit: 2, hits: 3 })).toBe(2);
    await pass(58_000);
    expect(await allowed(windows, { limit: 2, hits: 3 })).toBe(0);
  });

  test('a refusal says the whole seconds that are left, at least one', async () => {
    const { windows, pass } = await open();
    await windows.hit('key', 1);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    await pass(30_500);
    expect(await windows.hit('key', 1)).toEqual({
      allowed: false,
      retryAfterSeconds: expect.toSatisfy((seconds) => seconds === 30 || seconds === 29),
    });
    await pass(28_600);
    expect(await windows.hit('key', 1)).toEqual({ allowed: false, retryAfterSeconds: 1 });
  });

  test('a refused request does not count, so that a raised limit leaves its full difference', async () => {
    const { windows } = await open();
    await allowed(windows, { limit: 5, hits: 50 });
    expect(await allowed(windows, { limit: 8, hits: 50 })).toBe(3);
  });

  test('a lowered limit applies at once', async () => {
    const { windows } = await open();
    await allowed(windows, { limit: 60, hits: 10 });
    expect(await allowed(windows, { limit: 10, hits: 1 })).toBe(0);
    expect(await allowed(windows, { limit: 60, hits: 60 })).toBe(50);
  });

  test('each id has a window of its own, whatever it looks like', async () => {
    const { windows } = await open();
    await allowed(windows, { id: '$hits', limit: 1, hits: 5 });
    expect(await allowed(windows, { id: 'b.c', limit: 1, hits: 2 })).toBe(1);
  });
}
