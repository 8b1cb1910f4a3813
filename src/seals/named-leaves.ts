import type { SealedLeaves } from '../domain/operations-events.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { operationsOf } from '../event-store/operations.ts';
import type { RecordedEvent } from '../event-store/recorded-event.ts';
import { leavesAfter } from './leaves.ts';
import { treeStartBefore } from './seals.ts';

/**
 * Returns the leaves of events that are about to be removed from the log. The event that removes them has to contain
 * these and be recorded before they go, so that the tree can still be computed. Reads the log from the seal before the
 * first of them to the last.
 */
export async function namedLeaves(
  store: EventStore,
  events: readonly Pick<RecordedEvent, 'position'>[],
): Promise<SealedLeaves> {
  const wanted = new Set(events.map(({ position }) => position));
  const first = events.reduce((least, { position }) => Math.min(least, position), Number.MAX_SAFE_INTEGER);
  const { gaps } = await operationsOf(store);
  const found: SealedLeaves = [];
  for await (const leaves of leavesAfter(store, await treeStartBefore(store, first), { gaps })) {
    for (const { stream, revision, index, hash, event } of leaves) {
      if (event === undefined || !wanted.delete(event.position)) continue;
      found.push({ stream, revision, index, hash });
    }
    if (wanted.size === 0) return found;
  }
  return found;
}
