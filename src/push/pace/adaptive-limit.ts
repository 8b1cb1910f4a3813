/** An answer that takes longer may miss the 500 ms as soon as anything else delays it. */
const SAFE_MS = 400;
/** How much later than at its best a receiver may answer because of the other requests that we have sent. */
const MAX_QUEUE_MS = 100;
const MIN_QUEUE_MS = 25;
/** A round lasts at least this long, so that a receiver that begins to refuse gets few requests until we hear it. */
const MIN_ROUND_MS = 100;
/** The pause after the limit has shrunk. It doubles while growing again fails soon. */
const FIRST_REST_MS = 250;
const MAX_REST_MS = 16_000;
const SOON_MS = 10_000;
/** A limit that the receiver has refused is not tried again for this long. */
const REFUSED_MS = 300_000;
/** How much one answer changes what is held for the best time. */
const WEIGHT_OF_ANSWER = 0.25;
/** So many trials in a row must be good, since the time of one may be chance. */
const TRIALS = 2;
/** A trial is good if it takes no more of the time between the best and `SAFE_MS`. */
const TRIAL_PART = 0.4;
/** A little less than evenly: timers are late. */
const EVENLY = 0.9;
const LONG_AGO = Number.NEGATIVE_INFINITY;

/** How a request ended. All times are milliseconds on one clock that never steps. */
export interface Ended {
  readonly startedAtMs: number;
  readonly nowMs: number;
}

/**
 * How many requests, or handshakes, a receiver can have under way and still answer in time. It starts with one. While
 * answers come as fast as at best, each round of answers doubles it, or adds as many as would still be answered in time
 * if the receiver turned out to work on one after the other. It shrinks when answers come later, before they are too
 * late. A loss halves it, once for all that were under way together.
 *
 * This is TCP Vegas with a bound on the delay instead of the number of queued requests: only the 500 ms count, and a
 * receiver that answers within 100 ms of its best is not overloaded.
 */
export class AdaptiveLimit {
  readonly #max: number;
  #limit = 1;
  /** The mean time of an answer while the receiver is not busy with others of ours. */
  #bestMs: number | undefined;
  /** Counts only what starts after the last change of the limit: nothing else says whether that was right. */
  #round = { sinceMs: LONG_AGO, answers: 0, sumMs: 0, maxMs: 0, wasFull: false };
  /** Set after a loss until an answer comes: one request goes first. */
  #isProbing = false;
  /** When the request started that is under way beyond the limit, as a trial. */
  #triedAtMs: number | undefined;
  #mayTry = false;
  #goodTrials = 0;
  #lastStartMs = LONG_AGO;
  #nextAtMs = Infinity;
  #hasShrunk = false;
  #shrunkAtMs = LONG_AGO;
  #restMs = FIRST_REST_MS;
  #refused = { limit: Infinity, untilMs: LONG_AGO };

  constructor(max: number) {
    this.#max = max;
  }

  /** The mean time of an answer at best; `undefined` before the first one. */
  get bestMs(): number | undefined {
    return this.#bestMs;
  }

  /** Whether nothing was answered since the last loss. */
  get isProbing(): boolean {
    return this.#isProbing;
  }

  /** Whether more than one request may be under way. */
  get isCrowded(): boolean {
    return this.#limit > 1 || this.#triedAtMs !== undefined;
  }

  /** How many more may start now. */
  room(underWay: number, nowMs: number): number {
    const room = (this.#isProbing ? 1 : this.#limit) - underWay;
    const mayTry = room === 0 && this.#mayTry && !this.#isProbing && this.#triedAtMs === undefined;
    const gapMs = underWay === 0 ? 0 : this.#gapMs(mayTry);
    this.#nextAtMs = room > 0 || mayTry ? this.#lastStartMs + gapMs : Infinity;
    if (nowMs < this.#nextAtMs) return 0;
    return gapMs > 0 ? 1 : room;
  }

  /** When time alone gives room, after `room` said that there is none; infinite where it does not. */
  get nextAtMs(): number {
    return this.#nextAtMs;
  }

  /** `underWay`: with this one. */
  started(underWay: number, nowMs: number): void {
    if (underWay >= this.#limit) this.#round.wasFull = true;
    if (underWay > this.#limit && !this.#isProbing) {
      this.#triedAtMs = nowMs;
      this.#mayTry = false;
      this.#newRound(nowMs);
    }
    this.#lastStartMs = nowMs;
  }

  /** The receiver answered after `timeMs`. `isLate`: this process could not keep up, so the limit does not grow. */
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

  /** No answer came in time, or no connection was made, or the receiver said that it is overloaded. */
  lost({ startedAtMs, nowMs }: Ended): void {
    const { isCrowded } = this;
    this.#isProbing = true;
    this.#triedAtMs = undefined;
    if (startedAtMs < this.#shrunkAtMs) return; // it was under way together with the one that halved the limit
    if (isCrowded) this.#shrink(this.#limit / 2, nowMs); // a loss of one alone says nothing about how many
  }

  /** The receiver refused to have as many at once. */
  refused(ended: Ended): void {
    const limit = Math.max(1, Math.floor(this.#limit * 0.75));
    this.#refused = {
      limit: Math.min(limit, this.#refusedLimit(ended.nowMs)),
      untilMs: ended.nowMs + REFUSED_MS,
    };
    this.lost(ended);
  }

  /** It ended without a word of the receiver. */
  abandoned({ startedAtMs }: Ended): void {
    if (startedAtMs === this.#triedAtMs) this.#triedAtMs = undefined;
  }

  /** After a pause the receiver is judged anew; what it refused stays known. */
  restart(): void {
    this.#limit = 1;
    this.#hasShrunk = false;
    this.#restMs = FIRST_REST_MS;
    this.#triedAtMs = undefined;
    this.#mayTry = false;
    this.#newRound(LONG_AGO);
  }

  /**
   * Requests to a slow receiver start one by one, evenly over the time that it takes, so that one more than it can do at
   * once waits only for a part of that. A trial starts so late that it would be answered at `SAFE_MS` in the worst case.
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
   * With one under way there is no queue of ours: its time is the best also where it was less before. With more, only a
   * lower mean says something, and that of few answers less than that of many.
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
    const step = Math.min(safe, this.#hasShrunk ? 1 : this.#limit, most);
    this.#limit += Math.max(0, step);
    this.#mayTry = safe < 1 && most >= 1;
  }

  /** A receiver that works on one after the other would have answered the trial at `SAFE_MS`. */
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
    this.#hasShrunk = true;
    this.#rest(nowMs);
    this.#newRound(nowMs);
  }

  #rest(nowMs: number): void {
    const isSoon = nowMs - this.#shrunkAtMs < Math.max(SOON_MS, 4 * this.#restMs);
    this.#restMs = isSoon ? Math.min(2 * this.#restMs, MAX_REST_MS) : FIRST_REST_MS;
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
