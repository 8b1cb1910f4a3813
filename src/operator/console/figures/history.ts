import { ATTEMPT_DURATIONS, ATTEMPTS } from '../../../service/ops/delivery-metrics.ts';
import type { MetricsJson } from '../../../service/ops/work-metrics.ts';

const MINUTE_MS = 60_000;
const MINUTES_KEPT = 60;

/** The attempts that ended in one minute. */
export interface AttemptMinute {
  /** The beginning of the minute. */
  readonly atMs: number;
  readonly delivered: number;
  readonly failed: number;
  /** In milliseconds, as exact as the buckets of the metric; `null` without an attempt. */
  readonly medianMs: number | null;
  readonly p95Ms: number | null;
}

/** The attempts since the start of the thread that makes them. */
interface Counted {
  readonly delivered: number;
  readonly failed: number;
  /** For some numbers of seconds, how many attempts took at most that long. */
  readonly within: ReadonlyMap<number, number>;
}

const NONE: Counted = { delivered: 0, failed: 0, within: new Map() };

/** Knows the attempts of this process in each minute of the last hour, from the counters of its thread for webhooks. */
export class AttemptHistory {
  readonly #now: () => number;
  readonly #startedAtMs: number;
  /** The last reading of each minute, one more than are shown. */
  readonly #readings: { readonly atMs: number; readonly counted: Counted }[] = [];

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#startedAtMs = startOf(now());
  }

  /** Takes what the thread has counted since its start. */
  take(metrics: MetricsJson): void {
    const atMs = startOf(this.#now());
    if (this.#readings.at(-1)?.atMs === atMs) this.#readings.pop();
    this.#readings.push({ atMs, counted: countedBy(metrics) });
    if (this.#readings.length > MINUTES_KEPT + 1) this.#readings.shift();
  }

  /** Returns the minutes since the start of the process, oldest first: those of the last hour, with the present one. */
  minutes(): AttemptMinute[] {
    const last = startOf(this.#now());
    const countedUntil = (ms: number): Counted =>
      this.#readings.findLast(({ atMs }) => atMs < ms)?.counted ?? NONE;
    const all: AttemptMinute[] = [];
    let atMs = Math.max(this.#startedAtMs, last - (MINUTES_KEPT - 1) * MINUTE_MS);
    for (; atMs <= last; atMs += MINUTE_MS)
      all.push({ atMs, ...difference(countedUntil(atMs + MINUTE_MS), countedUntil(atMs)) });
    return all;
  }
}

function countedBy(metrics: MetricsJson): Counted {
  const values = metrics.flatMap(({ name, values }) =>
    name === ATTEMPTS || name === ATTEMPT_DURATIONS ? values : [],
  );
  const total = (outcome: string): number =>
    values.reduce((sum, { labels, value }) => sum + (labels.outcome === outcome ? value : 0), 0);
  const within = values.flatMap(({ labels: { le }, value }) =>
    le === undefined ? [] : [[le === '+Inf' ? Infinity : Number(le), value] as const],
  );
  return { delivered: total('delivered'), failed: total('failed'), within: new Map(within) };
}

function difference(counted: Counted, before: Counted): Omit<AttemptMinute, 'atMs'> {
  const within = [...counted.within].map(
    ([bound, count]) => [bound, count - (before.within.get(bound) ?? 0)] as const,
  );
  return {
    delivered: counted.delivered - before.delivered,
    failed: counted.failed - before.failed,
    medianMs: quantileMs(within, 0.5),
    p95Ms: quantileMs(within, 0.95),
  };
}

/** Returns a quantile, assuming that the attempts are spread evenly within a bucket. */
function quantileMs(within: readonly (readonly [bound: number, count: number])[], share: number) {
  const wanted = (within.at(-1)?.[1] ?? 0) * share;
  let [bound, count] = [0, 0];
  for (const [nextBound, nextCount] of within) {
    if (wanted > 0 && nextCount >= wanted) {
      const above = nextBound === Infinity ? bound : nextBound;
      const part = (wanted - count) / (nextCount - count);
      return Math.round((bound + part * (above - bound)) * 10_000) / 10;
    }
    [bound, count] = [nextBound, nextCount];
  }
  return null;
}

function startOf(ms: number): number {
  return ms - (ms % MINUTE_MS);
}
