import { DELIVERIES_GROUP } from '../deliveries/fan-out/run-fan-out.ts';
import type { PersistentSubscriptions } from '../event-store/event-store.ts';
import { NOTICES_GROUP } from '../notices/notifier.ts';

/** How many events are parked in each of the service's groups; those without any are left out. */
export async function parkedByGroup(
  subscriptions: PersistentSubscriptions,
): Promise<readonly { readonly group: string; readonly parked: number }[]> {
  const counts: { group: string; parked: number }[] = [];
  for (const group of [DELIVERIES_GROUP, NOTICES_GROUP]) {
    const parked = (await subscriptions.parked(group)).length;
    if (parked > 0) counts.push({ group, parked });
  }
  return counts;
}
