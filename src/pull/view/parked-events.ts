import { type Damage, type EventStore, MAX_PARKED_READ } from '../../event-store/event-store.ts';
import { notSkipped } from '../../event-store/skipped-events.ts';
import type { TransactionsView } from './transactions-view.ts';

/** Returns the number of events that the view has parked, without skipped ones unless there are many. */
export async function countParkedByView(
  store: Pick<EventStore, 'readStream'>,
  view: Pick<TransactionsView, 'parked' | 'countParked'>,
): Promise<number> {
  const counted = await view.countParked();
  if (counted === 0 || counted > MAX_PARKED_READ) return counted;
  return (await notSkipped(store, await view.parked())).length;
}

/**
 * Leaves out events that were recorded with a text that is no JSON. The view has parked such an event, since it could never
 * be read: it is a bad event and not a damaged one.
 */
export async function withoutParked(
  damage: readonly Damage[],
  view: () => Pick<TransactionsView, 'parked'>,
): Promise<readonly Damage[]> {
  if (damage.every(({ isCertain }) => isCertain)) return damage;
  const parked = new Set((await view().parked()).map(({ position }) => position));
  return damage.filter(({ isCertain, position }) => isCertain || !parked.has(position));
}
