import type { Clock } from '../base/clock.ts';
import { removeHourly } from '../base/time/hourly.ts';
import { world } from '../base/world.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { timeForAges } from '../event-store/reads.ts';
import type { DeliveryQueue } from './queue/delivery-queue.ts';

const BATCH = 100;
const PAUSE_MS = 20; // leaves the store to attempts between two batches

interface PurgeOptions {
  readonly queue: Pick<DeliveryQueue, 'change'>;
  readonly nowMs: number;
  readonly retentionMs: number;
  readonly signal: AbortSignal;
}

interface RetentionOptions extends Omit<PurgeOptions, 'nowMs'> {
  readonly store: Pick<EventStore, 'readBackwards'>;
  readonly clock: Clock;
}

/** Removes ended deliveries once they are older than the retention, every hour, until the signal aborts. */
export function startRetention(options: RetentionOptions & Parameters<typeof removeHourly>[2]): void {
  removeHourly(
    'ended deliveries and withdrawals',
    async () => purgeEnded({ ...options, nowMs: await timeForAges(options.store, options.clock) }),
    options,
  );
}

/** Removes deliveries that ended before the retention, in small batches, and returns how many. Rejects as the queue does. */
export async function purgeEnded(options: PurgeOptions): Promise<number> {
  const { queue, nowMs, retentionMs, signal } = options;
  let removed = 0;
  while (!signal.aborted) {
    const batch = await queue.change({ kind: 'purge', retentionMs, limit: BATCH }, nowMs);
    removed += batch;
    if (batch < BATCH) break;
    await world.sleep(PAUSE_MS);
  }
  return removed;
}
