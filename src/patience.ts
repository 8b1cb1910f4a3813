import { FuelError } from './errors.ts';
import type { Log } from './log.ts';
import { pause } from './pause.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** Whether an engine that can't be reached is all that is wrong: what it kept from being done can be tried again. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof FuelError && (error.code === 'STORE_UNAVAILABLE' || error.code === 'STORE_BUSY');
}

/** The level to log a failure at that is tried again: an engine that is away is no fault of this service. */
export function levelOf(error: unknown): 'warn' | 'error' {
  return isUnavailable(error) ? 'warn' : 'error';
}

export interface Patience {
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Who waits, as the log says it: `projector`. */
  readonly who: string;
}

/**
 * Does the work, again and again while an engine that it needs is away; says in the log that it waits, and when
 * it no longer does. Returns `undefined` where the signal aborts first. Rejects with what else goes wrong.
 */
export async function untilAvailable<T>(
  work: () => Promise<T>,
  { log, signal, who }: Patience,
): Promise<T | undefined> {
  let waiting = false;
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      const done = await work();
      if (waiting) log.info(`${who} goes on: the engine is back`);
      return done;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      if (!waiting) log.warn({ reason: (error as Error).message }, `${who} waits for an engine that is away`);
      waiting = true;
    }
    await pause(pauseMs, signal);
  }
  return undefined;
}
