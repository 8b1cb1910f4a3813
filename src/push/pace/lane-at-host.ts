import type { AttemptOutcome } from '../queue/delivery.ts';
import type { RequestLimit } from './request-limit.ts';

const ENDINGS = ['well', 'slow', 'unanswered', 'failed'] as const;
/** For this long an attempt is compared with others. */
export const RECENT_MS = 10_000;
/** Half of the counts is forgotten after this time. */
const HALF_LIFE_MS = 2_000;
/** The weight of one answer in the means. */
const WEIGHT = 0.25;

/**
 * How an attempt ended: answered as soon as those of other webhooks; later than these (`slow`) or not at all (`unanswered`)
 * although they were; or as a failure.
 */
export type Ending = (typeof ENDINGS)[number];

/** An attempt to which the receiver has said something, or nothing at all. Times are those of the steady clock. */
export interface HostAttempt {
  readonly startedAtMs: number;
  readonly nowMs: number;
  readonly outcome: AttemptOutcome;
  readonly answerMs: number;
  /** One more than the number of attempts that were under way at the host when it started. */
  readonly place: number;
  /** True if one that started later, of any lane that is paced with it, was answered sooner. */
  readonly isOvertaken: boolean;
}

/** One webhook at its host, with what is known of its recent attempts there. */
export class LaneAtHost {
  readonly prefix: string;
  underWay = 0;
  /** Its own limit while it is paced apart from the host's other webhooks. */
  own: RequestLimit | undefined;
  #counts = { well: 0, slow: 0, unanswered: 0, failed: 0 };
  #countedAtMs = 0;
  /** The attempts that were answered well: when the last one was sent, their mean time and their mean place. */
  #well: { readonly sentAtMs: number; readonly answerMs: number; readonly place: number } | undefined;
  #badSinceMs = Number.NEGATIVE_INFINITY;
  /** The time at which its last badly ended attempt ended. */
  lastBadMs = Number.NEGATIVE_INFINITY;

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** The time at which its last well answered attempt was sent. */
  get wellSinceMs(): number {
    return this.#well?.sentAtMs ?? Number.NEGATIVE_INFINITY;
  }

  /** The time at which the first of its recent badly ended attempts started; the given time if there is none. */
  badSinceMs(startedAtMs: number): number {
    return startedAtMs - this.#badSinceMs < RECENT_MS ? this.#badSinceMs : startedAtMs;
  }

  /** How long its attempts take in that place if the receiver handles one after the other, which is the worst case. */
  expectedMs(place: number): number {
    const { answerMs, place: mean } = this.#well ?? { answerMs: Infinity, place: 1 };
    return answerMs * Math.max(1, place / mean);
  }

  ended(ending: Ending, { startedAtMs, nowMs, outcome, answerMs, place }: HostAttempt): void {
    this.#fade(nowMs);
    this.#counts[ending] += 1;
    if (ending !== 'well') [this.#badSinceMs, this.lastBadMs] = [this.badSinceMs(startedAtMs), nowMs];
    if (!outcome.ok) return;
    const before = this.#well ?? { answerMs, place };
    this.#well = {
      sentAtMs: nowMs - answerMs,
      answerMs: before.answerMs + WEIGHT * (answerMs - before.answerMs),
      place: before.place + WEIGHT * (place - before.place),
    };
  }

  /** How many of its recent attempts ended so, and which share of them. Older ones count less. */
  recent(ending: Ending, nowMs: number): { readonly count: number; readonly share: number } {
    this.#fade(nowMs);
    const { well, slow, unanswered, failed } = this.#counts;
    const all = well + slow + unanswered + failed;
    return { count: this.#counts[ending], share: all === 0 ? 0 : this.#counts[ending] / all };
  }

  #fade(nowMs: number): void {
    const left = 2 ** ((this.#countedAtMs - nowMs) / HALF_LIFE_MS);
    for (const ending of ENDINGS) this.#counts[ending] *= left;
    this.#countedAtMs = nowMs;
  }
}
