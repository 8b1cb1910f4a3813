const FIRST_PER_SECOND = 10;
/** After this time the ramp of an enabled webhook allows 10,240 deliveries a second, and ends. */
const RAMP_MS = 10_000;
/** Unused starts are kept for this long, so that a timer that fires late does not lower the rate. */
const KEPT_MS = 20;
/** A refused rate is remembered this long after the refusal. */
const LEARNED_MS = 300_000;
/** The part of the refused rate that is used at first. */
const USED_PART = 0.9;
/** `Retry-After` is in whole seconds, so up to one second is due to rounding. */
const ROUNDED_MS = 1_000;
/** The learned rate doubles within this time, but no sooner than after this many deliveries, until it is refused again. */
const DOUBLES_IN = { ms: 60_000, deliveries: 4_000 } as const;
/** After a pause of this length earlier deliveries say nothing about the rate. */
const IDLE_MS = 5_000;

/**
 * When the next delivery of a webhook may start, as the receiver and the operator have asked: the ramp after the webhook
 * was enabled, the operator's rate, the receiver's `Retry-After`, and a rate that it has refused. All times
 * are those of the steady clock.
 */
export class LaneGate {
  #enabledAtMs: number | undefined;
  #heldUntilMs = 0;
  /** True after a hold until the receiver answers. Meanwhile one delivery at a time is sent. */
  #isTrial = false;
  #nextAtMs = 0;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  /** The deliveries that have started since the last pause, without the refused ones. */
  #accepted = { count: 0, sinceMs: 0 };
  /** The rate that the receiver's refusals allow, when the last hold ended, and how many deliveries were accepted by then. */
  #learned = { perSecond: Infinity, atMs: 0, accepted: 0 };

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
    if (nowMs < this.#heldUntilMs) return 0;
    const most = this.#isTrial ? 1 - underWay : Infinity;
    const intervalMs = this.#intervalMs(perSecond, nowMs);
    if (intervalMs === 0) return most;
    const fromMs = Math.max(this.#nextAtMs, nowMs - KEPT_MS);
    return Math.min(most, fromMs > nowMs ? 0 : 1 + Math.floor((nowMs - fromMs) / intervalMs));
  }

  /** When the next one may start, if only time is missing. */
  nextAtMs(perSecond: number, nowMs: number): number {
    return Math.max(this.#heldUntilMs, this.#intervalMs(perSecond, nowMs) === 0 ? 0 : this.#nextAtMs);
  }

  started({ perSecond, nowMs }: { readonly perSecond: number; readonly nowMs: number }): void {
    if (nowMs - this.#lastAtMs > IDLE_MS) {
      this.#accepted = { count: 0, sinceMs: nowMs };
      this.#learned.accepted = 0;
    }
    this.#lastAtMs = nowMs;
    this.#accepted.count += 1;
    this.#nextAtMs = Math.max(this.#nextAtMs, nowMs - KEPT_MS) + this.#intervalMs(perSecond, nowMs);
  }

  accepted(): void {
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
    const wereTogether = startedAtMs < this.#heldUntilMs; // another one of those under way was refused before
    const untilMs = Math.max(this.#heldUntilMs, nowMs + waitMs);
    const heldMs = untilMs - Math.max(this.#heldUntilMs, startedAtMs);
    this.#heldUntilMs = untilMs;
    this.#lastAtMs = untilMs;
    this.#isTrial = true;
    const accepted = this.#accepted;
    accepted.count -= 1;
    if (!isRate || accepted.count <= 0) return;
    if (!wereTogether && accepted.count <= this.#learned.accepted) {
      // It has accepted nothing since its last refusal, so it gives no rate, but only a time to wait.
      accepted.sinceMs += heldMs;
      return;
    }
    // A receiver that asks for no wait has still refused the rate until now.
    const forMs = Math.max(nowMs, untilMs - ROUNDED_MS) - accepted.sinceMs;
    if (forMs <= 0) return; // it was held for all of that time
    this.#learned = {
      perSecond: (USED_PART * accepted.count * 1000) / forMs,
      atMs: untilMs,
      accepted: accepted.count,
    };
  }

  /** The time between two starts; 0 if nothing limits the rate. */
  #intervalMs(perSecond: number, nowMs: number): number {
    return 1000 / Math.min(perSecond, this.#learnedPerSecond(nowMs), this.#rampPerSecond(nowMs));
  }

  #learnedPerSecond(nowMs: number): number {
    const { perSecond, atMs, accepted } = this.#learned;
    const forMs = nowMs - atMs;
    if (forMs >= LEARNED_MS) return Infinity;
    const growth = Math.min(forMs / DOUBLES_IN.ms, (this.#accepted.count - accepted) / DOUBLES_IN.deliveries);
    return perSecond * (1 + Math.max(0, growth));
  }

  #rampPerSecond(nowMs: number): number {
    if (this.#enabledAtMs === undefined) return Infinity;
    const forMs = nowMs - this.#enabledAtMs;
    if (forMs < RAMP_MS) return FIRST_PER_SECOND * 2 ** Math.max(0, Math.floor(forMs / 1000));
    this.#enabledAtMs = undefined;
    return Infinity;
  }
}
