import { systemClock } from '../clock.ts';
import type { Log } from '../log.ts';
import { world } from '../world.ts';

const HOUR_MS = 3_600_000;
/** The time within each hour. */
const AT_MS = 23 * 60_000;

interface Hourly {
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Calls `remove` every hour until the signal aborts. `what` names the removed things in the log: `ended deliveries`.
 */
export function removeHourly(what: string, remove: () => Promise<number>, { log, signal }: Hourly): void {
  let timer: NodeJS.Timeout;
  const run = async (): Promise<void> => {
    try {
      const removed = await remove();
      if (removed > 0) log.info({ removed }, `${what} removed after their retention`);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, `${what} could not be removed; trying next hour`);
    }
    plan();
  };
  const plan = (): void => {
    const delayMs = HOUR_MS - ((systemClock.now() - AT_MS) % HOUR_MS);
    if (!signal.aborted) timer = world.setTimeout(() => void run(), delayMs);
  };
  plan();
  signal.addEventListener('abort', () => world.clearTimeout(timer), { once: true });
}
