import type { Clock } from '../../base/clock.ts';

/** Time and timers together, so that a test can control both. */
export interface Scheduler extends Clock {
  /** Calls `run` once, `delayMs` from now; the function returned cancels it. */
  setTimer(delayMs: number, run: () => void): () => void;
}

const MAX_MS = 2 ** 31 - 1; // Node fires a longer timer at once; the callers look at the clock again

export const systemScheduler: Scheduler = {
  now: () => Date.now(),
  setTimer(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, MAX_MS));
    return () => clearTimeout(timer);
  },
};
