import type { Directory } from '../../../projections/directory.ts';
import { accountStream } from '../../domain/account-events.ts';
import type { EventStore, RecordedEvent } from '../../event-store/event-store.ts';
import type { SkippedEvents } from '../../event-store/skipped-events.ts';
import { readAccountEvent } from './apply-to-directory.ts';
import { type SharedRows, statesOf } from './rows/shared-rows.ts';

const STREAMS_A_READ = 100;

/**
 * Restores a directory, to which nothing was applied yet. Accounts that could not be read are folded again: this version
 * may read what the one that saved them could not. One whose stream no longer has all that was applied stays closed.
 * Rejects with `STORE_UNAVAILABLE` with nothing changed.
 */
export async function restoreDirectory(
  directory: Directory,
  loaded: SharedRows,
  { store, skipped }: { readonly store: EventStore; readonly skipped: SkippedEvents },
): Promise<void> {
  const states = [...statesOf(loaded)];
  const unreadable = states.filter((state) => state.unreadable !== null);
  const histories: (readonly RecordedEvent[])[] = [];
  for (let from = 0; from < unreadable.length; from += STREAMS_A_READ) {
    const some = unreadable.slice(from, from + STREAMS_A_READ);
    for (const events of await store.readStreams(some.map(({ id }) => accountStream(id))))
      histories.push(events);
  }
  directory.restore(states, loaded.position);
  for (const [index, { id, revision }] of unreadable.entries()) {
    const events = histories[index] ?? [];
    if ((events.at(-1)?.revision ?? -1) < revision) continue;
    const history = events.filter(({ position }) => position <= loaded.position); // the later ones are applied in turn
    const decoded = history.map((event) => ({ ...event, decoded: readAccountEvent(event, skipped) }));
    directory.refold(id, decoded);
  }
}
