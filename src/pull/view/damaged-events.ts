import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { TransactionsView } from './transactions-view.ts';

/**
 * What of the event store is damaged. An event that is text and no JSON may have been recorded so: where the view has
 * parked it, it never could be read, and is a bad event.
 */
export async function damagedEvents(
  store: Pick<EventStore, 'findDamage'>,
  view: () => Pick<TransactionsView, 'parked'>,
  signal?: AbortSignal,
): Promise<readonly Damage[]> {
  const damage = await store.findDamage(signal);
  if (damage.every(({ isCertain }) => isCertain)) return damage;
  const parked = new Set((await view().parked()).map(({ position }) => position));
  return damage.filter(({ isCertain, position }) => isCertain || !parked.has(position));
}
