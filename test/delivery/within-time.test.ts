import { describe, expect, test } from 'vitest';
import { withinTime } from '../../src/delivery/within-time.ts';

const LIMIT_MS = 60;
const later = <T>(ms: number, value: T) => new Promise<T>((resolve) => setTimeout(() => resolve(value), ms));

/** Work under the limit, and what its signal says. */
function limited(work: () => Promise<string>) {
  let told: AbortSignal | undefined;
  const result = withinTime({
    limitMs: LIMIT_MS,
    work: (signal) => {
      told = signal;
      return work();
    },
    expired: () => 'expired',
  });
  return { result, isAborted: () => told?.aborted };
}

describe('work within a time', () => {
  test('comes to its own result, and its signal never aborts', async () => {
    const { result, isAborted } = limited(async () => 'done');
    expect(await result).toBe('done');
    await later(2 * LIMIT_MS, undefined);
    expect(isAborted()).toBe(false);
  });

  test('rejects as the work does', async () => {
    const { result, isAborted } = limited(() => Promise.reject(new Error('broken')));
    await expect(result).rejects.toThrow('broken');
    await later(2 * LIMIT_MS, undefined);
    expect(isAborted()).toBe(false);
  });

  test('is given up when the time is over, not before, and told so', async () => {
    for (let count = 0; count < 5; count++) {
      const startedAt = performance.now();
      const { result, isAborted } = limited(() => later(10 * LIMIT_MS, 'late'));
      expect(await result).toBe('expired');
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(LIMIT_MS);
      expect(isAborted()).toBe(true);
    }
  });

  test('has all of its time also where the loop was busy right before it began', async () => {
    await later(1, undefined);
    const busyUntil = performance.now() + LIMIT_MS;
    while (performance.now() < busyUntil);
    // A timer that is set now counts from the turn's start: it would fire at once.
    const startedAt = performance.now();
    expect(await limited(() => later(10 * LIMIT_MS, 'late')).result).toBe('expired');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(LIMIT_MS);
  });
});
