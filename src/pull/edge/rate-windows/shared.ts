import { LRUCache } from 'lru-cache';
import { type Clock, steadyClock } from '../../../base/clock.ts';
import type { RateVerdict, RateWindows } from './rate-windows.ts';

/** How many full windows this process remembers. A forgotten one costs one more round trip. */
const MAX_REMEMBERED = 100_000;

/** A server's answer to a hit: whether it was counted, how many hits there are, and how long the window still lasts. */
export interface CountedHit {
  readonly counted: boolean;
  readonly hits: number;
  readonly leftMs: number;
}

/** A window that was full when it was last asked for: `hits` were counted in it, and it lasts at least to `endsAtMs`. */
interface FullWindow {
  readonly hits: number;
  readonly endsAtMs: number;
}

/**
 * Creates windows that all processes on one server share. `count` makes one round trip, which checks and counts in one
 * step by the server's clock. Once a window is full, which its last counted hit shows, hits are refused without one.
 */
export function createSharedRateWindows(
  count: (id: string, limit: number) => Promise<CountedHit>,
  steady: Clock = steadyClock,
): RateWindows {
  const full = new LRUCache<string, FullWindow>({ max: MAX_REMEMBERED });

  function known(id: string, limit: number): RateVerdict | undefined {
    const window = full.get(id);
    if (window === undefined || window.hits < limit) return undefined;
    const leftMs = window.endsAtMs - steady.now();
    return leftMs > 0 ? refused(leftMs) : undefined;
  }

  async function ask(id: string, limit: number): Promise<RateVerdict> {
    const askedAtMs = steady.now(); // read before the server's clock, so that it is never remembered for longer than it lasts
    const { counted, hits, leftMs } = await count(id, limit);
    if (hits >= limit) full.set(id, { hits, endsAtMs: askedAtMs + leftMs });
    return counted ? { allowed: true } : refused(leftMs);
  }

  return { hit: async (id, limit) => known(id, limit) ?? ask(id, limit) };
}

function refused(leftMs: number): RateVerdict {
  return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1_000)) };
}
