import { MAX_RETRY_AFTER_MS } from './retry-after.ts';

const FIRST_PER_SECOND = 10;
/** After this time the ramp of an enabled webhook allows 10,240 deliveries a second, and ends. */
export const RAMP_MS = 10_000;
/** Unused starts are kept for this long, so that a timer that fires late does not lower the rate. */
const KEPT_MS = 20;
/** The part of what was refused that is used. More is refused more often, less wastes the receiver. */
const USED_PART = 0.8;
/** A learned rate doubles in the first time, since `Retry-After` may ask for much more than is needed, and in the second one after that rate was refused itself. */
const DOUBLES_IN_MS = { guessed: 10_000, found: 300_000 } as const;
/** After a pause of this length earlier deliveries say nothing about the rate. */
const IDLE_MS = 5_000;

/**
 * When the next delivery of a webhook may start, as the receiver and the operator have asked: the receiver's `Retry-After`, a
 * rate that it has refused, the operator's rate, and the ramp after the webhook was enabled.
 *
 * The first refusal says how many deliveries are accepted in the time until more are. Four fifths of that are the rate, which
 * grows while deliveries are accepted, and drops to four fifths of itself when it is refused, but not below four fifths of
 * what has been accepted on average. All times are those of the steady clock.
 */
export class LaneRate {
  #enabledAtMs: number | undefined;
  #heldUntilMs = 0;
  /** True after a hold until the receiver answers. Meanwhile one delivery at a time is sent. */
  #isTrial = false;
  #nextAtMs = 0;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  /** The deliveries that were accepted since the last pause. */
  #accepted = { count: 0, sinceMs: 0 };
  /** The rate that the receiver's refusals allow, the time from which it grows, and whether it was refused itself. */
  #learned = { perMs: Infinity, grownMs: 0, isFound: false };

  /** The webhook was enabled. */
  enabled(atMs: number): void {
    this.#enabledAtMs = atMs;
    this.#nextAtMs = atMs;
  }

  /** How many more may start now. `perSecond` is the operator's limit. */
  room(
    underWay: number,
    { perSecond, nowMs }: { readonly perSecond: number; readonly nowMs: number },
  ): number {
    if (this.isHeld(nowMs)) return 0;
    const most = this.#isTrial ? 1 - underWay : Infinity;
    const intervalMs = this.#intervalMs(perSecond, nowMs);
    if (intervalMs === 0) return most;
    const fromMs = Math.max(this.#nextAtMs, nowMs - KEPT_MS);
    return Math.min(most, fromMs > nowMs ? 0 : 1 + Math.floor((nowMs - fromMs) / intervalMs));
  }

  /** True while the receiver has asked to wait. */
  isHeld(nowMs: number): boolean {
    return nowMs < this.#heldUntilMs;
  }

  /** When the next one may start, if only time is missing. */
  nextAtMs(perSecond: number, nowMs: number): number {
    return Math.max(this.#heldUntilMs, this.#intervalMs(perSecond, nowMs) === 0 ? 0 : this.#nextAtMs);
  }

  started({ perSecond, nowMs }: { readonly perSecond: number; readonly nowMs: number }): void {
    if (nowMs - this.#lastAtMs > IDLE_MS) this.#accepted = { count: 0, sinceMs: nowMs };
    this.#lastAtMs = nowMs;
    this.#nextAtMs = Math.max(this.#nextAtMs, nowMs - KEPT_MS) + this.#intervalMs(perSecond, nowMs);
  }

  accepted(nowMs: number): void {
    const learned = this.#learned;
    const doubledInMs = learned.isFound ? DOUBLES_IN_MS.found : DOUBLES_IN_MS.guessed;
    learned.perMs *= 2 ** Math.min(1, Math.max(0, nowMs - learned.grownMs) / doubledInMs);
    learned.grownMs = nowMs;
    this.#accepted.count += 1;
    this.#isTrial = false;
  }

  /** The receiver refused a delivery and asked to wait for `waitMs`. If `isRate`, the reason was the rate. */
  refused(
    waitMs: number,
    {
      startedAtMs,
      nowMs,
      isRate,
    }: { readonly startedAtMs: number; readonly nowMs: number; readonly isRate: boolean },
  ): void {
    const isNews = startedAtMs >= this.#heldUntilMs; // otherwise it was under way when another one was refused
    this.#heldUntilMs = Math.max(this.#heldUntilMs, nowMs + waitMs);
    this.#lastAtMs = this.#heldUntilMs;
    this.#isTrial = true;
    const learned = this.#learned;
    learned.grownMs = this.#heldUntilMs;
    const { count, sinceMs } = this.#accepted;
    if (!isRate || !isNews || count === 0) return; // if it has accepted nothing, it gives no rate, but only a time to wait
    const onAverage = count / Math.max(1, this.#heldUntilMs - sinceMs);
    learned.isFound = learned.perMs < Infinity;
    const refused = learned.isFound ? Math.max(learned.perMs, onAverage) : onAverage;
    learned.perMs = Math.max(USED_PART * refused, 1 / MAX_RETRY_AFTER_MS);
  }

  /** The time between two starts; 0 if nothing limits the rate. */
  #intervalMs(perSecond: number, nowMs: number): number {
    return 1000 / Math.min(perSecond, 1000 * this.#learned.perMs, this.#rampPerSecond(nowMs));
  }

  #rampPerSecond(nowMs: number): number {
    if (this.#enabledAtMs === undefined) return Infinity;
    const forMs = nowMs - this.#enabledAtMs;
    if (forMs < RAMP_MS) return FIRST_PER_SECOND * 2 ** Math.max(0, Math.floor(forMs / 1000));
    this.#enabledAtMs = undefined;
    return Infinity;
  }
}
