import type { SealedLeaves } from '../domain/operations-events.ts';
import type { EventStore } from '../event-store/event-store.ts';
import type { RecordedEvent } from '../event-store/recorded-event.ts';
import { leavesAfter } from './leaves.ts';
import { anchorBefore, Gaps } from './seals.ts';

/**
 * What the event has to name that takes these events out of the log, so that its tree stays whole: to be recorded before
 * they go. Reads the log from the seal before the first of them to the last.
 */
export async function namedLeaves(
  store: EventStore,
  events: readonly Pick<RecordedEvent, 'position'>[],
): Promise<SealedLeaves> {
  const wanted = new Set(events.map(({ position }) => position));
  const first = events.reduce((least, { position }) => Math.min(least, position), Number.MAX_SAFE_INTEGER);
  const gaps = new Gaps();
  await gaps.read(store);
  const found: SealedLeaves = [];
  for await (const leaves of leavesAfter(store, await anchorBefore(store, first), { gaps })) {
    for (const { stream, revision, index, hash, event } of leaves) {
      if (event === undefined || !wanted.delete(event.position)) continue;
      found.push({ stream, revision, index, hash });
    }
    if (wanted.size === 0) return found;
  }
  return found;
}
