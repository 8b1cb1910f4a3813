/** The longest answer that is planned for. More fails where times vary or the receiver stops for a moment, less wastes a receiver that takes 300 ms. */
const SAFE_MS = 400;
/** How long our own requests may delay an answer. More finds out sooner that a slow receiver has many workers, and fails more where times vary. */
const QUEUE_MS = 100;
/** After a pause the limit grows at most e-fold in this time. Less has more requests under way when a receiver begins to refuse, more is slower at a fast one. */
const GROWTH_MS = 30;
/** The answers in the mean time. More is slower to follow a change, less follows chance. */
const MEAN_OF = 16;
/** The weight of a request that was alone in the best time, which may then become longer: nothing of ours has delayed it. */
const WEIGHT_ALONE = 1 / 4;
/** After this time without an answer a second request is sent. Earlier, a serial receiver that takes 400 ms would answer it too late; later, one that hangs keeps others of its host waiting. */
const UNKNOWN_MS = 300;
/** The most requests under way at one host. */
export const MAX_AT_HOST = 128;
/** A number that the receiver has refused doubles in this time. Less is refused more often, more is slow where the receiver has grown. */
const REFUSED_MS = 300_000;
/** By this much `room` and `nextAtMs` may differ. Otherwise the moment that one tells may be too early for the other. */
const ROUNDING = 1e-9;
const LONG_AGO = Number.NEGATIVE_INFINITY;

/** A request under way. */
export interface Place {
  /** Its number in the order of starts. */
  readonly number: number;
  /** Its place among those under way when it started. */
  readonly at: number;
  /** The answers until then. */
  readonly answers: number;
}

/**
 * How many requests a receiver may have under way.
 *
 * At worst a receiver handles one request after the other, and then the time of a request is proportional to its place among
 * those under way. So if a request in place n took the time t, then n × goal ÷ t requests are answered within the goal, whatever
 * the receiver is like. That number is the limit: where several are handled at once, a request takes less time than its place
 * would cost, so that each answer allows more, until all of the receiver's workers are busy.
 *
 * - The goal is the best time so far and `QUEUE_MS`, at most `SAFE_MS`.
 * - A place is a fraction, since the first of the others is partly done when a request starts. So a limit of 1.3 means a start at
 *   the right moment, and a serial receiver that takes 350 ms is told from a parallel one at no risk.
 * - A request that a later one has overtaken waits for something of its own, such as a dead backend. It takes no place, its loss
 *   does not count, and a place is no higher than the number of answers that came meanwhile.
 *
 * All times are those of the steady clock.
 */
export class RequestLimit {
  #value = 1;
  /** The most that the receiver has not refused. */
  #most = MAX_AT_HOST;
  #growsSinceMs = 0;
  /** When the request that is handled first began to be handled, at the latest: when the one before it ended, or when it started. */
  #firstSinceMs = LONG_AGO;
  #mean = { ms: 0, answers: 0 };
  #bestMs = Infinity;
  #answers = 0;
  #started = 0;
  /** The requests under way, in the order of their starts, without those that a later one has overtaken. */
  readonly #underWay = new Set<number>();

  /** The time of an answer that none of our other requests delay; infinite before the first one. */
  get bestMs(): number {
    return this.#bestMs;
  }

  /** How many more may start now, beside those that will start before. */
  room(before: number, nowMs: number): number {
    const ahead = this.#underWay.size + before;
    const limit = this.#isRested(nowMs) ? 1 : this.#value;
    return this.#place(ahead, nowMs) <= limit + ROUNDING ? Math.max(1, Math.floor(limit) - ahead) : 0;
  }

  /** The time at which there will be room without anything else happening; infinite if not at all. */
  get nextAtMs(): number {
    const { size } = this.#underWay;
    return size < this.#value + 1
      ? this.#firstSinceMs + (size + 1 - this.#value) * this.#expectedMs
      : Infinity;
  }

  /** A request starts. */
  started(nowMs: number): Place {
    const { size } = this.#underWay;
    if (this.#isRested(nowMs)) [this.#value, this.#growsSinceMs] = [1, nowMs];
    if (size === 0) this.#firstSinceMs = nowMs;
    this.#started += 1;
    const place = { number: this.#started, at: this.#place(size, nowMs), answers: this.#answers };
    this.#underWay.add(place.number);
    return place;
  }

  /** True if a request that started later has been answered sooner. */
  isOvertaken({ number }: Place): boolean {
    return !this.#underWay.has(number);
  }

  /** Nothing was sent, or the answer says nothing about the number. */
  abandoned({ number }: Place): void {
    this.#underWay.delete(number);
  }

  /** The receiver answered in `timeMs`, without the network's time. If `isLate`, this process could not keep up, and more would only make it later. */
  answered(
    { number, at, answers }: Place,
    timeMs: number,
    { nowMs, isLate = false }: { nowMs: number; isLate?: boolean },
  ): void {
    this.#answers += 1;
    for (const other of this.#underWay) {
      if (other > number) break;
      this.#underWay.delete(other);
    }
    const place = Math.min(at, this.#answers - answers);
    const mean = this.#mean;
    const ms = Math.max(1, timeMs);
    mean.answers = Math.min(mean.answers + 1, MEAN_OF);
    mean.ms += (ms - mean.ms) / mean.answers;
    if (at > 1 || this.#bestMs === Infinity) this.#bestMs = Math.min(this.#bestMs, mean.ms);
    else this.#bestMs += WEIGHT_ALONE * (ms - this.#bestMs);
    const goalMs = Math.min(SAFE_MS, this.#bestMs + QUEUE_MS);
    const fits = (place * goalMs) / Math.max(ms, mean.ms);
    const fastest = Math.max(this.#value, Math.exp((nowMs - this.#growsSinceMs) / GROWTH_MS));
    const grown = isLate ? this.#value : Math.min(fits, fastest);
    this.#most *= 2 ** (Math.max(0, nowMs - this.#firstSinceMs) / REFUSED_MS);
    this.#set(fits > this.#value ? grown : this.#value - 1 + fits / this.#value, nowMs);
  }

  /**
   * The receiver has not answered, or has said that it is overloaded. The lost request takes its place with it, so that one at
   * a time is left when all are lost. If the receiver has refused the number, `most` are not too many.
   */
  lost({ number }: Place, nowMs: number, most = MAX_AT_HOST): void {
    if (!this.#underWay.delete(number)) return; // it was overtaken
    this.#most = Math.max(1, Math.min(this.#most, most));
    this.#set(this.#value - 1, nowMs);
  }

  /** Forgets times and refusals that were not the receiver's fault. */
  forgive(): void {
    this.#mean = { ms: 0, answers: 0 };
    this.#bestMs = Infinity;
    this.#most = MAX_AT_HOST;
  }

  /** After a pause what a receiver could do is no longer known: it may have been replaced. */
  #isRested(nowMs: number): boolean {
    return this.#underWay.size === 0 && nowMs - this.#firstSinceMs > SAFE_MS;
  }

  #place(ahead: number, nowMs: number): number {
    if (ahead === 0) return 1;
    const sinceMs = this.#underWay.size === 0 ? nowMs : this.#firstSinceMs;
    return ahead + Math.max(0, 1 - (nowMs - sinceMs) / this.#expectedMs);
  }

  /** The time that the first of the requests under way takes, as far as is known. */
  get #expectedMs(): number {
    return Math.min(this.#bestMs, UNKNOWN_MS);
  }

  #set(value: number, nowMs: number): void {
    this.#firstSinceMs = nowMs;
    this.#most = Math.min(this.#most, MAX_AT_HOST);
    this.#value = Math.max(1, Math.min(value, this.#most));
  }
}
