import type { Clock } from '../base/clock.ts';
import { removeHourly } from '../base/time/hourly.ts';
import { world } from '../base/world.ts';
import type { DeliveryQueue } from './queue/delivery-queue.ts';

const BATCH = 100;
const PAUSE_MS = 20; // leaves the store to attempts between two batches

export interface RetentionOptions {
  readonly queue: Pick<DeliveryQueue, 'purge'>;
  readonly clock: Clock;
  readonly retentionMs: number;
  readonly signal: AbortSignal;
}

/** Removes ended deliveries once they are older than the retention, every hour, until the signal aborts. */
export function startRetention(options: RetentionOptions & Parameters<typeof removeHourly>[2]): void {
  removeHourly('ended deliveries and withdrawals', () => purgeEnded(options), options);
}

/** Removes what ended before the retention, in small batches; says how many. Rejects as the queue does. */
export async function purgeEnded(options: RetentionOptions): Promise<number> {
  const { queue, clock, retentionMs, signal } = options;
  const endedBeforeMs = clock.now() - retentionMs;
  let removed = 0;
  while (!signal.aborted) {
    const batch = await queue.purge(endedBeforeMs, BATCH);
    removed += batch;
    if (batch < BATCH) break;
    await world.sleep(PAUSE_MS);
  }
  return removed;
}
