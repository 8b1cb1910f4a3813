import { Directory } from '../../projections/directory.ts';
import { ACCOUNT_STREAMS } from '../domain/account-events.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { applyToDirectory } from './apply-to-directory.ts';

/** The directory as of now, for a command that ends: every account event up to the present end of the log. */
export async function loadDirectory(store: EventStore): Promise<Directory> {
  const directory = new Directory();
  const { signal } = new AbortController();
  for await (const batch of store.subscribe({ prefixes: [ACCOUNT_STREAMS], after: 0, signal })) {
    for (const event of batch.events) applyToDirectory(directory, event);
    directory.advance(batch.position);
    if (batch.caughtUp) break;
  }
  return directory;
}
