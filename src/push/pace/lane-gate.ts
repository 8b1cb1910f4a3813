const FIRST_PER_SECOND = 10;
/** By then a webhook that was enabled may start 10,240 deliveries a second: it no longer matters. */
const RAMP_MS = 10_000;
/** Unused starts are kept this long: a timer that fires late costs no rate. */
const KEPT_MS = 20;
/** A refused rate is remembered this long after the refusal. */
const LEARNED_MS = 300_000;
/** The part of the refused rate that is used first from then on. */
const USED_PART = 0.9;
/** `Retry-After` is in whole seconds: up to one of them comes from rounding. */
const ROUNDED_MS = 1_000;
/** The learned rate doubles in this time, and no sooner than after so many deliveries, until it is refused again. */
const DOUBLES_IN = { ms: 60_000, deliveries: 4_000 } as const;
/** After a pause of this long the deliveries accepted before it say nothing about the rate. */
const IDLE_MS = 5_000;

/**
 * When the next delivery of one webhook may start, by what its receiver and the operator have asked for: the ramp after
 * it was enabled, the operator's rate, the receiver's `Retry-After`, and a rate that it has refused. All times are
 * milliseconds on one clock that never steps.
 */
export class LaneGate {
  #enabledAtMs: number | undefined;
  #heldUntilMs = 0;
  /** Set after a hold until the receiver answers: one delivery goes first. */
  #isTrial = false;
  #nextAtMs = 0;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  /** What started since the last pause, less what was refused of it. */
  #accepted = { count: 0, sinceMs: 0 };
  /** What the receiver can take a second, as its refusals tell: at the end of the last hold, and what was accepted by then. */
  #learned = { perSecond: Infinity, atMs: 0, accepted: 0 };

  /** The webhook was enabled. */
  enabled(atMs: number): void {
    this.#enabledAtMs = atMs;
    this.#nextAtMs = atMs;
  }

  /** How many more may start now. `perSecond`: what the operator allows. */
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

  /** When the next one may start, where the time alone prevents it. */
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

  /** The receiver refused a delivery and asked to wait for `waitMs`. `isRate`: because of how many came in a time. */
  refused(
    waitMs: number,
    {
      startedAtMs,
      nowMs,
      isRate,
    }: { readonly startedAtMs: number; readonly nowMs: number; readonly isRate: boolean },
  ): void {
    const wereTogether = startedAtMs < this.#heldUntilMs; // with one that was refused before
    const untilMs = Math.max(this.#heldUntilMs, nowMs + waitMs);
    const heldMs = untilMs - Math.max(this.#heldUntilMs, startedAtMs);
    this.#heldUntilMs = untilMs;
    this.#lastAtMs = untilMs;
    this.#isTrial = true;
    const accepted = this.#accepted;
    accepted.count -= 1;
    if (!isRate || accepted.count <= 0) return;
    if (!wereTogether && accepted.count <= this.#learned.accepted) {
      // It accepted nothing since its last refusal: it says no rate, only how long to wait.
      accepted.sinceMs += heldMs;
      return;
    }
    const perSecond = (USED_PART * accepted.count * 1000) / (untilMs - ROUNDED_MS - accepted.sinceMs);
    this.#learned = { perSecond, atMs: untilMs, accepted: accepted.count };
  }

  /** Between two starts; 0: nothing limits the rate. */
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
