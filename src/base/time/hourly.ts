import { schedule } from 'node-cron';
import type { Log } from '../log.ts';

const EVERY_HOUR = '23 * * * *';

/** Removes what is too old, every hour until the signal aborts. `what`: `ended deliveries`, for the log. */
export function removeHourly(
  what: string,
  remove: () => Promise<number>,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): void {
  const run = async (): Promise<void> => {
    try {
      const removed = await remove();
      if (removed > 0) log.info({ removed }, `${what} removed after their retention`);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, `${what} could not be removed; trying next hour`);
    }
  };
  const task = schedule(EVERY_HOUR, run, { noOverlap: true });
  signal.addEventListener('abort', () => void task.destroy(), { once: true });
}
