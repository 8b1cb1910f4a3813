import {
  type Damage,
  type DamageSearch,
  type EventStore,
  MAX_PARKED_READ,
} from '../../event-store/event-store.ts';
import { notSkipped } from '../../event-store/skipped-events.ts';
import type { TransactionsView } from './transactions-view.ts';

/** How many events the view has parked, without what was skipped, unless there are many. */
export async function countParkedByView(
  store: Pick<EventStore, 'readStream'>,
  view: Pick<TransactionsView, 'parked' | 'countParked'>,
): Promise<number> {
  const counted = await view.countParked();
  if (counted === 0 || counted > MAX_PARKED_READ) return counted;
  return (await notSkipped(store, await view.parked())).length;
}

/** What of the event store is damaged. */
export async function damagedEvents(
  store: Pick<EventStore, 'findDamage'>,
  view: () => Pick<TransactionsView, 'parked'>,
  search?: DamageSearch,
): Promise<readonly Damage[]> {
  return withoutParked(await store.findDamage(search), view);
}

/**
 * The real damage. An event that is text and no JSON may have been recorded so: where the view has parked it, it never
 * could be read, and is a bad event.
 */
export async function withoutParked(
  damage: readonly Damage[],
  view: () => Pick<TransactionsView, 'parked'>,
): Promise<readonly Damage[]> {
  if (damage.every(({ isCertain }) => isCertain)) return damage;
  const parked = new Set((await view().parked()).map(({ position }) => position));
  return damage.filter(({ isCertain, position }) => isCertain || !parked.has(position));
}
