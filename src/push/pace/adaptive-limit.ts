/** An answer that takes longer than this may miss the 500 ms as soon as anything else delays it. */
const SAFE_MS = 400;
/** By how much our own other requests may delay an answer, compared with the receiver's best time. */
const MAX_QUEUE_MS = 100;
const MIN_QUEUE_MS = 25;
/** A round lasts at least this long, so that a receiver that begins to refuse gets few requests before we notice. */
const MIN_ROUND_MS = 100;
/** The pause after the limit has shrunk. It doubles each time that growing again soon leads to a loss. */
const FIRST_REST_MS = 250;
const MAX_REST_MS = 16_000;
const SOON_MS = 10_000;
/** A limit that the receiver has refused is not tried again for this long. */
const REFUSED_MS = 300_000;
/** The weight of one answer in the estimate of the best time. */
const WEIGHT_OF_ANSWER = 0.25;
/** How many trials in a row must be good, since one may be good by chance. */
const TRIALS = 2;
/** A trial is good if it takes at most this part of the time between the best time and `SAFE_MS`. */
const TRIAL_PART = 0.4;
/** Starts are a little closer than even, since timers are late. */
const EVENLY = 0.9;
const LONG_AGO = Number.NEGATIVE_INFINITY;

/** When a request started and ended. All times are those of the steady clock. */
export interface Ended {
  readonly startedAtMs: number;
  readonly nowMs: number;
}

/**
 * Finds out how many requests, or handshakes, a receiver can have under way and still answer in time. The limit starts at
 * one. While answers are as fast as the best ones, each round of answers doubles it, or adds as many as would still be
 * answered in time if the receiver processed one after the other. The limit shrinks when answers get slower, before they
 * are too late. A loss halves it, once for all requests that were under way together.
 *
 * This is TCP Vegas with a bound on the delay instead of on queued requests: only the 500 ms count, and a receiver that
 * answers within 100 ms of its best time is not overloaded.
 */
export class AdaptiveLimit {
  readonly #max: number;
  #limit = 1;
  /** The mean time of an answer while the receiver is not busy with our other requests. */
  #bestMs: number | undefined;
  /** The answers to requests that started after the last change of the limit. Only these show whether it was right. */
  #round = { sinceMs: LONG_AGO, answers: 0, sumMs: 0, maxMs: 0, wasFull: false };
  /** True from a loss until the next answer. Meanwhile one request at a time is sent. */
  #isProbing = false;
  /** The start of the trial that is under way, a request beyond the limit. */
  #triedAtMs: number | undefined;
  #mayTry = false;
  #goodTrials = 0;
  #lastStartMs = LONG_AGO;
  #nextAtMs = Infinity;
  #hasLost = false;
  #shrunkAtMs = LONG_AGO;
  #restMs = FIRST_REST_MS;
  #refused = { limit: Infinity, untilMs: LONG_AGO };

  constructor(max: number) {
    this.#max = max;
  }

  /** The best mean time of an answer; `undefined` before the first one. */
  get bestMs(): number | undefined {
    return this.#bestMs;
  }

  /** Whether nothing has been answered since the last loss. */
  get isProbing(): boolean {
    return this.#isProbing;
  }

  /** Whether more than one request may be under way. */
  get isCrowded(): boolean {
    return this.#limit > 1 || this.#triedAtMs !== undefined;
  }

  /** How many more requests may start now. */
  room(underWay: number, nowMs: number): number {
    const room = (this.#isProbing ? 1 : this.#limit) - underWay;
    const mayTry = room === 0 && this.#mayTry && !this.#isProbing && this.#triedAtMs === undefined;
    const gapMs = underWay === 0 ? 0 : this.#gapMs(mayTry);
    this.#nextAtMs = room > 0 || mayTry ? this.#lastStartMs + gapMs : Infinity;
    if (nowMs < this.#nextAtMs) return 0;
    return gapMs > 0 ? 1 : room;
  }

  /** When there will be room without anything else happening, after `room` has returned 0; infinite if not at all. */
  get nextAtMs(): number {
    return this.#nextAtMs;
  }

  /** A request has started. `underWay` includes it. */
  started(underWay: number, nowMs: number): void {
    if (underWay >= this.#limit) this.#round.wasFull = true;
    if (underWay > this.#limit && !this.#isProbing) {
      this.#triedAtMs = nowMs;
      this.#mayTry = false;
      this.#newRound(nowMs);
    }
    this.#lastStartMs = nowMs;
  }

  /** The receiver answered after `timeMs`. If `isLate`, this process could not keep up, and the limit does not grow. */
  answered(timeMs: number, { startedAtMs, nowMs }: Ended, isLate = false): void {
    this.#isProbing = false;
    const round = this.#round;
    if (isLate) round.wasFull = false;
    if (this.#triedAtMs !== undefined && startedAtMs <= this.#triedAtMs) {
      if (startedAtMs === this.#triedAtMs) this.#judgeTrial(timeMs, nowMs);
      return;
    }
    if (startedAtMs < round.sinceMs) return;
    round.answers += 1;
    round.sumMs += timeMs;
    round.maxMs = Math.max(round.maxMs, timeMs);
    if (round.answers >= this.#limit && nowMs - round.sinceMs >= MIN_ROUND_MS) this.#endRound(nowMs);
  }

  /** No answer came in time, no connection was made, or the receiver said that it is overloaded. */
  lost({ startedAtMs, nowMs }: Ended): void {
    const { isCrowded } = this;
    this.#isProbing = true;
    this.#triedAtMs = undefined;
    if (startedAtMs < this.#shrunkAtMs) return; // it was under way when the limit was halved
    if (!isCrowded) return; // the loss of a single request says nothing about the limit
    this.#hasLost = true;
    this.#rest(nowMs);
    this.#shrink(this.#limit / 2, nowMs);
  }

  /** The receiver refused the number of requests. */
  refused(ended: Ended): void {
    const limit = Math.max(1, Math.floor(this.#limit * 0.75));
    this.#refused = {
      limit: Math.min(limit, this.#refusedLimit(ended.nowMs)),
      untilMs: ended.nowMs + REFUSED_MS,
    };
    this.lost(ended);
  }

  /** The request ended without an answer that says anything. */
  abandoned({ startedAtMs }: Ended): void {
    if (startedAtMs !== this.#triedAtMs) return;
    this.#triedAtMs = undefined;
    this.#mayTry = true;
  }

  /** Forgets losses, refusals and times that were not the receiver's fault. The limit stays, and doubles again from there. */
  forgive(): void {
    this.#isProbing = false;
    this.#hasLost = false;
    this.#refused = { limit: Infinity, untilMs: LONG_AGO };
    this.#bestMs = undefined;
    this.#restMs = FIRST_REST_MS;
    this.#triedAtMs = undefined;
    this.#pause(LONG_AGO);
    this.#newRound(LONG_AGO);
  }

  /** Starts again from one after a pause. What the receiver has refused is still remembered. */
  restart(): void {
    this.#limit = 1;
    this.#hasLost = false;
    this.#restMs = FIRST_REST_MS;
    this.#triedAtMs = undefined;
    this.#mayTry = false;
    this.#newRound(LONG_AGO);
  }

  /**
   * The time between two starts. Requests to a slow receiver start evenly over its answer time, so that one more than it can
   * process at once waits only for a part of that time. A trial starts so late that it would be answered at `SAFE_MS` in the
   * worst case.
   */
  #gapMs(isTrial: boolean): number {
    const bestMs = this.#bestMs ?? 0;
    if (isTrial) return Math.max(1, bestMs * (1 + 1 / this.#limit) - SAFE_MS);
    return bestMs > SAFE_MS / 2 ? (EVENLY * bestMs) / this.#limit : 0;
  }

  #endRound(nowMs: number): void {
    const { answers, sumMs, maxMs, wasFull } = this.#round;
    const meanMs = sumMs / answers;
    const bestMs = this.#best(meanMs, answers);
    const queueMs = Math.min(MAX_QUEUE_MS, Math.max(MIN_QUEUE_MS, SAFE_MS - bestMs));
    const lateMs = meanMs - bestMs;
    this.#newRound(nowMs);
    if (lateMs > queueMs && this.#limit > 1) this.#shrink((this.#limit * (bestMs + queueMs)) / meanMs, nowMs);
    else if (wasFull && lateMs <= queueMs / 2 && nowMs >= this.#shrunkAtMs + this.#restMs)
      this.#grow(maxMs, nowMs);
  }

  /**
   * Updates the best time. A request that is alone does not wait for our others, so its time counts even if it is longer than
   * before. Otherwise only a lower mean counts, and that of few answers counts less.
   */
  #best(meanMs: number, answers: number): number {
    const before = this.#bestMs ?? meanMs;
    const follows = this.#limit === 1 || meanMs < before;
    this.#bestMs = before + (follows ? Math.min(1, answers * WEIGHT_OF_ANSWER) * (meanMs - before) : 0);
    return this.#bestMs;
  }

  #grow(longestMs: number, nowMs: number): void {
    const most = Math.min(this.#max, this.#refusedLimit(nowMs)) - this.#limit;
    const safe = Math.floor(this.#limit * (SAFE_MS / longestMs - 1));
    const step = Math.min(safe, this.#hasLost ? 1 : this.#limit, most);
    this.#limit += Math.max(0, step);
    this.#mayTry = safe < 1 && most >= 1;
  }

  /** Judges a trial. A receiver that processes one request after the other would have answered it at `SAFE_MS`. */
  #judgeTrial(timeMs: number, nowMs: number): void {
    const bestMs = this.#bestMs ?? timeMs;
    this.#triedAtMs = undefined;
    this.#newRound(nowMs);
    if (timeMs > bestMs + TRIAL_PART * (SAFE_MS - bestMs)) {
      this.#rest(nowMs);
      return;
    }
    this.#goodTrials += 1;
    this.#mayTry = this.#goodTrials < TRIALS;
    if (this.#mayTry) return;
    this.#goodTrials = 0;
    this.#limit += 1;
  }

  #shrink(limit: number, nowMs: number): void {
    this.#limit = Math.max(1, Math.min(Math.floor(limit), this.#limit - 1));
    this.#pause(nowMs);
    this.#newRound(nowMs);
  }

  /** Makes the pause longer each time that growing again soon has failed. */
  #rest(nowMs: number): void {
    const isSoon = nowMs - this.#shrunkAtMs < Math.max(SOON_MS, 4 * this.#restMs);
    this.#restMs = isSoon ? Math.min(2 * this.#restMs, MAX_REST_MS) : FIRST_REST_MS;
    this.#pause(nowMs);
  }

  #pause(nowMs: number): void {
    this.#shrunkAtMs = nowMs;
    this.#mayTry = false;
    this.#goodTrials = 0;
  }

  #newRound(sinceMs: number): void {
    this.#round = { sinceMs, answers: 0, sumMs: 0, maxMs: 0, wasFull: false };
  }

  #refusedLimit(nowMs: number): number {
    return nowMs < this.#refused.untilMs ? this.#refused.limit : Infinity;
  }
}
