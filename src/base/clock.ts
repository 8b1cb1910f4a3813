import { world } from './world.ts';

/**
 * A source of milliseconds, replaced in tests. There are two: one named `clock` tells the time of day (since the epoch,
 * UTC), which is recorded and may be set; one named `steady` never jumps, and measures how long something takes.
 */
export interface Clock {
  now(): number;
}

/** The time of day with timers, so that a test can control both. */
export interface AlarmClock extends Clock {
  /** Calls `run` once, `delayMs` from now; the function returned cancels it. */
  setTimer(delayMs: number, run: () => void): () => void;
}

const MAX_MS = 2 ** 31 - 1; // Node fires a longer timer at once; callers look at the clock again when it fires

/** The time of day. */
export const systemClock: AlarmClock = {
  now: () => world.clockMs(),
  setTimer(delayMs, run) {
    const timer = world.setTimeout(run, Math.min(delayMs, MAX_MS));
    return () => world.clearTimeout(timer);
  },
};

/** Milliseconds with fractions since the machine booted, the same in all its processes and threads. */
export const steadyClock: Clock = { now: () => world.steadyMs() };
