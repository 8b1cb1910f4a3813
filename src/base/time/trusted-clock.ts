import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { type Clock, sinceBoot } from '../clock.ts';
import type { Coordination } from '../coordination/coordination.ts';
import type { Log } from '../log.ts';

/** The most that a clock may be ahead of the last known time: about as long as the service may have been stopped. */
const MAX_AHEAD_MS = DAY_MS;
/** A clock that has run evenly for this long is right, whatever was known before. */
const SETTLED_AFTER_MS = DAY_MS;
/** The name of the mark: a lease that never ends, whose holder is the time. */
const MARK = 'trusted time';

type Marks = Pick<Coordination, 'acquire' | 'release' | 'holder'>;

export interface TrustedClockOptions {
  readonly clock: Clock;
  readonly coordination: Marks;
  /** When the newest event was recorded, if there is one. */
  readonly newestEventMs: () => Promise<number | undefined>;
  readonly log: Log;
  /** A clock that is not affected when the time of day is set. */
  readonly elapsed?: Clock;
}

/** Returns how far the clock is ahead of a known time, or 0 if that is within the limit. */
export function aheadMs(nowMs: number, knownMs: number): number {
  return nowMs > knownMs + MAX_AHEAD_MS ? nowMs - knownMs : 0;
}

/** The newest time that a process of the service has trusted. */
export async function trustedTime(coordination: Pick<Coordination, 'holder'>): Promise<number | undefined> {
  const mark = await coordination.holder(MARK);
  return mark && Date.parse(mark.holder);
}

/**
 * Decides if the clock may say what is old enough to be removed. It is compared with the time at which a process last
 * looked, or with the newest event if none has. If it is far ahead of that, it is not trusted until it has run for a
 * day.
 */
export class TrustedClock implements Clock {
  readonly #options: TrustedClockOptions;
  /** The time that the clock showed when it was last trusted, or should have shown at the first look. */
  #known: { readonly atMs: number; readonly elapsedMs: number } | undefined;
  /** The time for which the clock has been ahead of this mark. Another process with a right clock moves the mark. */
  #doubt: { readonly sinceMs: number; readonly knownMs: number } | undefined;

  constructor(options: TrustedClockOptions) {
    this.#options = options;
  }

  /** The time, or what it should be while the clock is far ahead, for judging the age of things. */
  now(): number {
    const { clock, elapsed = sinceBoot } = this.#options;
    const nowMs = clock.now();
    if (this.#known === undefined) return nowMs;
    const expectedMs = this.#known.atMs + elapsed.now() - this.#known.elapsedMs;
    return aheadMs(nowMs, expectedMs) > 0 ? expectedMs : nowMs;
  }

  /** Returns true, and moves the mark, if the clock is trusted. Call it at the start and before each removal. */
  async look(): Promise<boolean> {
    const { clock, coordination, log, elapsed = sinceBoot } = this.#options;
    const knownMs = (await trustedTime(coordination)) ?? (await this.#options.newestEventMs());
    const nowMs = clock.now();
    const elapsedMs = elapsed.now();
    if (knownMs !== undefined && aheadMs(nowMs, knownMs) > 0) {
      if (this.#doubt?.knownMs !== knownMs) this.#doubt = { sinceMs: elapsedMs, knownMs };
      this.#known ??= { atMs: knownMs, elapsedMs };
      if (elapsedMs - this.#doubt.sinceMs < SETTLED_AFTER_MS) {
        const times = { clock: formatDateTime(nowMs), known: formatDateTime(knownMs) };
        log.warn(times, 'the clock is far ahead of the time known last: nothing is removed by its age');
        return false;
      }
    }
    this.#doubt = undefined;
    this.#known = { atMs: nowMs, elapsedMs };
    await mark(coordination, nowMs);
    return true;
  }
}

async function mark(coordination: Marks, nowMs: number): Promise<void> {
  const before = await coordination.holder(MARK);
  if (before !== undefined) await coordination.release(MARK, before.holder);
  await coordination.acquire(MARK, formatDateTime(nowMs), Number.POSITIVE_INFINITY);
}
