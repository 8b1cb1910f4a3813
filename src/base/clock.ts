/** The source of time, replaced in tests. Milliseconds since the epoch, UTC. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/**
 * Milliseconds since the boot, for what lasts: it runs on evenly when the time of day is corrected. The same in all
 * threads, unlike `performance.now`.
 */
export const sinceBoot: Clock = { now: () => Number(process.hrtime.bigint() / 1_000_000n) };
