import type { AttemptReport } from './delivery-metrics.ts';

const MINUTE_MS = 60_000;
const MINUTES_KEPT = 60;
/** Each bound is a quarter above the one before: an attempt of a second is in the 32nd. */
const BOUNDS_MS = Array.from({ length: 34 }, (_, step) => 1.25 ** step);

/** The attempts that ended in one minute. */
export interface AttemptMinute {
  /** When it began. */
  readonly atMs: number;
  readonly delivered: number;
  /** By kind of failure. */
  readonly failed: Readonly<Record<string, number>>;
  /** Milliseconds, to a quarter; `null` without an attempt. */
  readonly medianMs: number | null;
  readonly p95Ms: number | null;
}

interface Minute {
  readonly atMs: number;
  delivered: number;
  readonly failed: Record<string, number>;
  readonly durations: Uint32Array;
}

/** The attempts of this process in each minute of the last hour. */
export class AttemptHistory {
  readonly #now: () => number;
  readonly #minutes: Minute[] = [];
  readonly #startedAtMs: number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#startedAtMs = now();
  }

  add({ attempts, durationsSeconds }: AttemptReport): void {
    if (attempts.length === 0) return;
    const minute = this.#present();
    for (const { outcome, kind, count } of attempts) {
      if (outcome === 'delivered') minute.delivered += count;
      else minute.failed[kind] = (minute.failed[kind] ?? 0) + count;
    }
    for (const seconds of durationsSeconds) {
      const found = BOUNDS_MS.findIndex((bound) => seconds * 1_000 <= bound);
      const at = found === -1 ? BOUNDS_MS.length - 1 : found;
      minute.durations[at] = (minute.durations[at] ?? 0) + 1;
    }
  }

  /** Every minute since the start of the process, at most the last hour, the present one included; oldest first. */
  minutes(): AttemptMinute[] {
    const last = startOf(this.#now());
    const first = Math.max(startOf(this.#startedAtMs), last - (MINUTES_KEPT - 1) * MINUTE_MS);
    const known = new Map(this.#minutes.map((minute) => [minute.atMs, minute]));
    const all: AttemptMinute[] = [];
    for (let atMs = first; atMs <= last; atMs += MINUTE_MS) {
      const minute = known.get(atMs) ?? newMinute(atMs);
      const { delivered, failed, durations } = minute;
      const [medianMs, p95Ms] = [quantile(durations, 0.5), quantile(durations, 0.95)];
      all.push({ atMs, delivered, failed: { ...failed }, medianMs, p95Ms });
    }
    return all;
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
  return { atMs, delivered: 0, failed: {}, durations: new Uint32Array(BOUNDS_MS.length) };
}

function startOf(ms: number): number {
  return ms - (ms % MINUTE_MS);
}

function quantile(counts: Uint32Array, share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let left = Math.ceil(total * share);
  for (const [at, count] of counts.entries()) {
    left -= count;
    if (count > 0 && left <= 0) return Math.round((BOUNDS_MS[at] ?? 0) * 10) / 10;
  }
  return null;
}

/** An hour of figures that are read every 15 s. */
const READINGS_KEPT = 240;

export interface Reading {
  readonly atMs: number;
  /** Seconds by follower; one that could not be read is left out. */
  readonly lag: Readonly<Record<string, number>>;
  /** `null` where it could not be read. */
  readonly pending: number | null;
}

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
