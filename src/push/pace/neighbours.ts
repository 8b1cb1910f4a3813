import { type Ending, type HostAttempt, type LaneAtHost, RECENT_MS } from './lane-at-host.ts';

/** An answer is slow if it takes this much longer than those of another webhook in the same place. */
const SLOW_MS = 100;
/** The same if there is no other to compare with yet. */
const LONG_MS = 250;
/** How many recent attempts must have ended so before a webhook stands out. A slow one is certain, since its place is known. */
const MIN_COUNT = { slow: 1, unanswered: 1, failed: 2 } as const;
/** The share of these among its attempts, and how many times the share of another webhook that must be. */
const MIN_SHARE = 1 / 8;
const TIMES_WORSE = 4;
/** A webhook stands out for at least this long after its last such attempt: those that started before it have ended then. */
const SETTLED_MS = 1_000;
/** How many webhooks are remembered that were answered well. Two are enough for each to be compared with another. */
const REMEMBERED = 2;

/**
 * Judges which webhooks of a host stand out: their attempts are slow or fail while those of others, sent in the same time, are
 * answered well. Their answers say nothing about what the host can do.
 *
 * A receiver is at worst serial. Then the time of an attempt is proportional to its place among those under way, so an answer
 * that takes longer than another webhook's in the same place is not late because the host has too many. A failure is compared
 * by its share: an overloaded host fails all of its webhooks alike.
 */
export class Neighbours {
  /** The webhooks that were last answered well, the newest first. */
  #well: LaneAtHost[] = [];

  /** Takes an attempt into account. Returns whether its webhook stands out now. */
  standsOut(lane: LaneAtHost, attempt: HostAttempt): boolean {
    const { startedAtMs, nowMs, outcome } = attempt;
    const others = this.#well.filter((other) => other !== lane && other.wellSinceMs > nowMs - RECENT_MS);
    const badSinceMs = lane.badSinceMs(startedAtMs);
    const ending = endingOf(attempt, others);
    lane.ended(ending, attempt);
    if (lane.own !== undefined)
      return nowMs < lane.lastBadMs + SETTLED_MS || lane.recent('well', nowMs).share <= 1 - MIN_SHARE;
    if (outcome.ok) this.#well = [lane, ...this.#well.filter((other) => other !== lane)].slice(0, REMEMBERED);
    if (ending === 'well') return false;
    const { count, share } = lane.recent(ending, nowMs);
    if (count < MIN_COUNT[ending] || share < MIN_SHARE) return false;
    return others.some(
      (other) => other.wellSinceMs > badSinceMs && other.recent(ending, nowMs).share <= share / TIMES_WORSE,
    );
  }

  /** A webhook that is paced apart says nothing about others. */
  leaves(lane: LaneAtHost): void {
    this.#well = this.#well.filter((other) => other !== lane);
  }
}

function endingOf(
  { outcome, answerMs, place, isOvertaken }: HostAttempt,
  others: readonly LaneAtHost[],
): Ending {
  const isUnanswered = !outcome.ok && outcome.kind === 'timeout';
  if (!outcome.ok && !isUnanswered) return 'failed';
  if (!isOvertaken) return 'well'; // others were no faster, so it waited for the host
  const isSlow =
    others.length === 0
      ? answerMs >= LONG_MS
      : others.some((other) => answerMs - other.expectedMs(place) >= SLOW_MS);
  if (!isSlow) return 'well'; // if it was not answered, then because of the host: others would have been as late in its place
  return isUnanswered ? 'unanswered' : 'slow';
}
