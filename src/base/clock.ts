import { world } from './world.ts';

/** The source of time, replaced in tests. Milliseconds since the epoch, UTC. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => world.now() };

/**
 * Milliseconds since the machine booted, for measuring durations: it is not affected when the time of day is corrected.
 * It is the same in all threads.
 */
export const sinceBoot: Clock = { now: () => world.sinceBootMs() };

/** Milliseconds with fractions, on a clock of this thread that never jumps. */
export const steadyClock: Clock = { now: () => world.elapsedMs() };

/** Time and timers together, so that a test can control both. */
export interface Scheduler extends Clock {
  /** Calls `run` once, `delayMs` from now; the function returned cancels it. */
  setTimer(delayMs: number, run: () => void): () => void;
}

const MAX_MS = 2 ** 31 - 1; // Node fires a longer timer at once; callers look at the clock again when it fires

export const systemScheduler: Scheduler = {
  now: () => world.now(),
  setTimer(delayMs, run) {
    const timer = world.setTimeout(run, Math.min(delayMs, MAX_MS));
    return () => world.clearTimeout(timer);
  },
};
