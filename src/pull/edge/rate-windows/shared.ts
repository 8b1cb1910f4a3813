import { LRUCache } from 'lru-cache';
import { type Clock, sinceBoot } from '../../../base/clock.ts';
import type { RateVerdict, RateWindows } from './rate-windows.ts';

/** How many ids at their limit this process remembers. A forgotten one costs one more round trip. */
const MAX_REMEMBERED = 100_000;

/** A server's answer to a hit: whether it was counted, how many hits there are, and how long the window still lasts. */
export interface CountedHit {
  readonly counted: boolean;
  readonly hits: number;
  readonly leftMs: number;
}

/** An id that was refused: `hits` were counted in a window that lasts at least to `endsAtMs`. */
interface Refusal {
  readonly hits: number;
  readonly endsAtMs: number;
}

/**
 * Creates windows that all processes on one server share. `count` makes one round trip, which checks and counts in one
 * step by the server's clock. Hits of an id that is known to be at its limit are refused without one. `clock` must be
 * monotonic.
 */
export function createSharedRateWindows(
  count: (id: string, limit: number) => Promise<CountedHit>,
  clock: Clock = sinceBoot,
): RateWindows {
  const refusals = new LRUCache<string, Refusal>({ max: MAX_REMEMBERED });

  function known(id: string, limit: number): RateVerdict | undefined {
    const refusal = refusals.get(id);
    if (refusal === undefined || refusal.hits < limit) return undefined;
    const leftMs = refusal.endsAtMs - clock.now();
    return leftMs > 0 ? refused(leftMs) : undefined;
  }

  async function ask(id: string, limit: number): Promise<RateVerdict> {
    const askedAtMs = clock.now(); // read before the server's clock, so that a remembered refusal never outlasts the window
    const { counted, hits, leftMs } = await count(id, limit);
    if (counted) return { allowed: true };
    refusals.set(id, { hits, endsAtMs: askedAtMs + leftMs });
    return refused(leftMs);
  }

  return { hit: async (id, limit) => known(id, limit) ?? ask(id, limit) };
}

function refused(leftMs: number): RateVerdict {
  return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1_000)) };
}
