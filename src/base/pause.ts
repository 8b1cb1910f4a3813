import { steadyClock } from './clock.ts';
import { world } from './world.ts';

/** Waits for `ms` milliseconds. Resolves at once when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await world.sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Called between two steps of long work, so that other work in the thread gets its turn. */
export type Rest = () => Promise<void>;

/** The least work before a rest. Timers are only accurate to a millisecond. */
const MIN_WORK_MS = 5;
/** The longest rest. Steps that took longer have mostly waited for a server. */
const MAX_REST_MS = 20;

/** Rests as long as the steps since the last rest took, so that the work uses at most half of its thread's time. */
export function gently(signal: AbortSignal): Rest {
  let beganAtMs = steadyClock.now();
  return async () => {
    const tookMs = steadyClock.now() - beganAtMs;
    if (tookMs < MIN_WORK_MS) return;
    await pause(Math.min(tookMs, MAX_REST_MS), signal);
    beganAtMs = steadyClock.now();
  };
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Resolves as `work` does, or after `limitMs` with the result or error of `late`. The work itself continues. */
export async function orLate<T>(work: Promise<T>, limitMs: number, late: () => T): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = world.setTimeout(resolve, limitMs);
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    world.clearTimeout(timer);
  }
}
