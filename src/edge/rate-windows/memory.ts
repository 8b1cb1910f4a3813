import { LRUCache } from 'lru-cache';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { type RateVerdict, type RateWindows, WINDOW_SECONDS } from './rate-windows.ts';

/** Windows of this process. With more than `maxIds` ids the least recently used one is forgotten. */
export function createMemoryRateWindows(options: { maxIds?: number } = {}): RateWindows {
  // Limits differ by key and may change, so they are compared here; the library keeps counts and windows.
  const windows = new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: WINDOW_SECONDS });
  const ids =
    options.maxIds === undefined
      ? undefined
      : new LRUCache<string, true>({ max: options.maxIds, dispose: (_, id) => void windows.delete(id) });

  async function count(id: string, limit: number): Promise<RateVerdict> {
    const window = await windows.get(id);
    if (window !== null && window.msBeforeNext > 0 && window.consumedPoints >= limit) {
      return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(window.msBeforeNext / 1000)) };
    }
    await windows.consume(id);
    return { allowed: true };
  }

  // One hit after the other: no other hit may count between the look-up and the count.
  let last: Promise<void> = Promise.resolve();
  const settled = (): void => undefined;
  return {
    hit(id, limit) {
      ids?.set(id, true); // the same value again disposes of nothing
      const verdict = last.then(() => count(id, limit));
      last = verdict.then(settled, settled);
      return verdict;
    },
  };
}
