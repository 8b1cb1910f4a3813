import type { DeliveryState, DeliverySummary } from '../../../src/push/queue/delivery.ts';
import type { DeliveryFilter, DeliveryReads } from '../../../src/push/queue/delivery-queue.ts';

/** Returns all deliveries that a filter selects. */
export async function listed(
  queue: Pick<DeliveryReads, 'page'>,
  filter: DeliveryFilter = {},
): Promise<readonly DeliverySummary[]> {
  return (await queue.page(filter, { limit: 100_000 })).deliveries;
}

export async function countByState(
  queue: Pick<DeliveryReads, 'page'>,
  filter: DeliveryFilter = {},
): Promise<Record<DeliveryState, number>> {
  const counts = { pending: 0, delivered: 0, failed: 0, withdrawn: 0 };
  for (const { state } of await listed(queue, filter)) counts[state] += 1;
  return counts;
}
