import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { removeHourly } from '../base/time/hourly.ts';
import { world } from '../base/world.ts';
import { DAY_MS } from '../domain/values/date-time.ts';
import type { DeliveryControl } from './queue/delivery-queue.ts';

const BATCH = 100;
/** Between the clocks of those who record, store and withdraw. */
const CLOCK_SKEW_MS = DAY_MS;
const PAUSE_MS = 20; // leaves the store to attempts between two batches

export interface RetentionOptions {
  readonly queue: Pick<DeliveryControl, 'purge' | 'purgeWithdrawals'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly retentionMs: number;
  readonly signal: AbortSignal;
}

/** Removes ended deliveries once they are older than the retention, every hour, until the signal aborts. */
export function startRetention(options: RetentionOptions): void {
  removeHourly('ended deliveries', () => purgeEnded(options), options);
}

/**
 * Removes what ended before the retention, in small batches; says how many. Forgets withdrawals a day later: nothing is
 * enqueued for what was recorded before the retention. Rejects as the queue does.
 */
export async function purgeEnded(options: Omit<RetentionOptions, 'log'>): Promise<number> {
  const { queue, clock, retentionMs, signal } = options;
  const endedBeforeMs = clock.now() - retentionMs;
  const inBatches = async (remove: () => Promise<number>): Promise<number> => {
    let removed = 0;
    while (!signal.aborted) {
      const batch = await remove();
      removed += batch;
      if (batch < BATCH) break;
      await world.sleep(PAUSE_MS);
    }
    return removed;
  };
  const removed = await inBatches(() => queue.purge(endedBeforeMs, BATCH));
  await inBatches(() => queue.purgeWithdrawals(endedBeforeMs - CLOCK_SKEW_MS, BATCH));
  return removed;
}
