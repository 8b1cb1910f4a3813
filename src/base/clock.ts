import { world } from './world.ts';
/** The source of time, replaced in tests. Milliseconds since the epoch, UTC. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => world.now() };

/**
 * Milliseconds since the boot, for what lasts: it runs on evenly when the time of day is corrected. The same in all
 * threads.
 */
export const sinceBoot: Clock = { now: () => world.sinceBootMs() };

/** Time and timers together, so that a test can control both. */
export interface Scheduler extends Clock {
  /** Calls `run` once, `delayMs` from now; the function returned cancels it. */
  setTimer(delayMs: number, run: () => void): () => void;
}

const MAX_MS = 2 ** 31 - 1; // Node fires a longer timer at once; the callers look at the clock again

export const systemScheduler: Scheduler = {
  now: () => world.now(),
  setTimer(delayMs, run) {
    const timer = world.setTimeout(run, Math.min(delayMs, MAX_MS));
    return () => world.clearTimeout(timer);
  },
};
