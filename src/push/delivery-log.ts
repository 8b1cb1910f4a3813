import type { Clock } from '../base/clock.ts';
import { FuelError } from '../base/errors.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { formatDateTime } from '../domain/values/date-time.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { newEvent } from '../event-store/new-event.ts';
import { operationsOf } from '../event-store/operations.ts';
import type { DeliveryQueue } from './queue/delivery-queue.ts';

const AUTHOR = { actor: 'system', command: 'webhooks start' };

/**
 * Makes sure that the delivery log belongs to the event store, and records it there if no log is recorded yet. Throws
 * `STORE_MISMATCH` if another log is recorded: only that one knows what receivers have got, and continuing without it
 * would send them everything again.
 */
export async function claimDeliveryLog(
  store: EventStore,
  queue: Pick<DeliveryQueue, 'logId'>,
  clock: Clock,
): Promise<void> {
  const { id, startedAtMs } = await queue.logId();
  for (;;) {
    const { deliveryLog: started, revision } = await operationsOf(store);
    if (started?.id === id) return;
    if (started !== undefined) {
      throw new FuelError(
        'STORE_MISMATCH',
        `the delivery log is ${id}, and this event store's is ${started.id}. Restore the backup of the delivery ` +
          'log that belongs to it. If it is lost, run `fuel verify deliveries --repair --resend-unknown`',
      );
    }
    const data = { log_id: id, started_at: formatDateTime(startedAtMs) };
    const event = newEvent({ type: 'DeliveryLogStarted', data }, AUTHOR, clock.now());
    const expected = revision ?? 'none'; // if several processes start at once, one of them records it
    await store.append([{ stream: OPERATIONS_STREAM, expected, events: [event] }]);
  }
}
