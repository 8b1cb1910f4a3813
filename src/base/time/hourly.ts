import type { Log } from '../log.ts';
import { world } from '../world.ts';

const HOUR_MS = 3_600_000;
/** Of each hour. */
const AT_MS = 23 * 60_000;

/** Removes what is too old, every hour until the signal aborts. `what`: `ended deliveries`, for the log. */
export function removeHourly(
  what: string,
  remove: () => Promise<number>,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): void {
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
    const delayMs = HOUR_MS - ((world.now() - AT_MS) % HOUR_MS);
    if (!signal.aborted) timer = world.setTimeout(() => void run(), delayMs);
  };
  plan();
  signal.addEventListener('abort', () => world.clearTimeout(timer), { once: true });
}
