import { ATTEMPT_DURATIONS, ATTEMPTS } from '../../../service/ops/delivery-metrics.ts';
import type { Reading } from '../../../service/ops/shared-figures.ts';
import type { MetricsJson } from '../../../service/ops/work-metrics.ts';

const MINUTE_MS = 60_000;
const MINUTES_KEPT = 60;

/** The attempts that ended in one minute. */
export interface AttemptMinute {
  /** When it began. */
  readonly atMs: number;
  readonly delivered: number;
  /** By kind of failure. */
  readonly failed: Readonly<Record<string, number>>;
  /** Milliseconds, as exact as the buckets of the metric; `null` without an attempt. */
  readonly medianMs: number | null;
  readonly p95Ms: number | null;
}

interface Minute {
  readonly atMs: number;
  delivered: number;
  readonly failed: Record<string, number>;
  /** How many took at most so many seconds. */
  readonly within: Map<number, number>;
}

/** The attempts of this process in each minute of the last hour, from the counters of the thread that makes them. */
export class AttemptHistory {
  readonly #now: () => number;
  readonly #minutes: Minute[] = [];
  readonly #startedAtMs: number;
  /** What was counted before, by metric and labels. */
  readonly #before = new Map<string, number>();

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#startedAtMs = now();
  }

  /** Takes what the thread has counted since its start. */
  take(metrics: MetricsJson): void {
    for (const { name, values } of metrics) {
      if (name !== ATTEMPTS && name !== ATTEMPT_DURATIONS) continue;
      for (const { value, labels } of values) {
        const key = `${name} ${Object.values(labels).join(' ')}`;
        const more = value - (this.#before.get(key) ?? 0);
        if (more === 0) continue;
        this.#before.set(key, value);
        this.#add(labels, more);
      }
    }
  }

  /** Every minute since the start of the process, at most the last hour, the present one included; oldest first. */
  minutes(): AttemptMinute[] {
    const last = startOf(this.#now());
    const first = Math.max(startOf(this.#startedAtMs), last - (MINUTES_KEPT - 1) * MINUTE_MS);
    const known = new Map(this.#minutes.map((minute) => [minute.atMs, minute]));
    const all: AttemptMinute[] = [];
    for (let atMs = first; atMs <= last; atMs += MINUTE_MS) {
      const { delivered, failed, within } = known.get(atMs) ?? newMinute(atMs);
      const [medianMs, p95Ms] = [quantileMs(within, 0.5), quantileMs(within, 0.95)];
      all.push({ atMs, delivered, failed: { ...failed }, medianMs, p95Ms });
    }
    return all;
  }

  #add({ outcome, kind, le }: Readonly<Record<string, string | number | undefined>>, more: number): void {
    const minute = this.#present();
    if (outcome === 'delivered') minute.delivered += more;
    else if (outcome === 'failed') minute.failed[String(kind)] = (minute.failed[String(kind)] ?? 0) + more;
    else if (le !== undefined) {
      const bound = le === '+Inf' ? Infinity : Number(le);
      minute.within.set(bound, (minute.within.get(bound) ?? 0) + more);
    }
  }

  #present(): Minute {
    const atMs = startOf(this.#now());
    const last = this.#minutes.at(-1);
    if (last?.atMs === atMs) return last;
    const minute = newMinute(atMs);
    this.#minutes.push(minute);
    if (this.#minutes.length > MINUTES_KEPT) this.#minutes.shift();
    return minute;
  }
}

function newMinute(atMs: number): Minute {
  return { atMs, delivered: 0, failed: {}, within: new Map() };
}

function startOf(ms: number): number {
  return ms - (ms % MINUTE_MS);
}

/** Between the bounds of its bucket it is where an even spread would have it. */
function quantileMs(within: ReadonlyMap<number, number>, share: number): number | null {
  const wanted = (within.get(Infinity) ?? 0) * share;
  let below = { bound: 0, count: 0 };
  for (const [bound, count] of [...within].toSorted(([a], [b]) => a - b)) {
    if (wanted > 0 && count >= wanted) {
      const above = bound === Infinity ? below.bound : bound;
      const part = (wanted - below.count) / (count - below.count);
      return Math.round((below.bound + part * (above - below.bound)) * 10_000) / 10;
    }
    below = { bound, count };
  }
  return null;
}

/** An hour of figures that are read every 15 s. */
const READINGS_KEPT = 240;

/** The shared figures of the last hour, as this process read them. */
export class FigureHistory {
  readonly #readings: Reading[] = [];

  add(reading: Reading): void {
    this.#readings.push(reading);
    if (this.#readings.length > READINGS_KEPT) this.#readings.shift();
  }

  /** Oldest first. */
  readings(): readonly Reading[] {
    return [...this.#readings];
  }
}
