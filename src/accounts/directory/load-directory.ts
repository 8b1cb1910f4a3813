import { systemClock } from '../../base/clock.ts';
import { isUnavailable } from '../../base/errors.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { readSkipped } from '../../event-store/skipped-events.ts';
import { applyToDirectory, DIRECTORY_STREAMS, firstShown, restoreDirectory } from './apply-to-directory.ts';
import { Directory } from './fold/directory.ts';
import type { StoredDirectory } from './rows/stored-directory.ts';

/**
 * Loads the directory as of now, for a command: every account event up to the current end of the log. It starts from
 * the stored directory, or from the first event if that can't be used or its store is unavailable. Rejects with the
 * event store's errors.
 */
export async function loadDirectory(store: EventStore, stored?: StoredDirectory): Promise<Directory> {
  const directory = new Directory();
  const skipped = await readSkipped(store);
  const loading = await reachable(stored?.load(store, systemClock));
  if (loading?.kind === 'loaded') await restoreDirectory(directory, loading.loaded, { store, skipped });
  for await (const batch of readToEnd(store, { prefixes: DIRECTORY_STREAMS, after: directory.position })) {
    for (const event of batch.events) {
      if (event.stream.startsWith(ACCOUNT_STREAMS)) applyToDirectory(directory, event, skipped);
      const shown = await firstShown(store, event);
      if (shown !== undefined) directory.close(shown);
    }
    directory.advance(batch.position);
  }
  return directory;
}

/**
 * Returns `undefined` if the stored directory is unavailable.
 */
async function reachable<T>(reading: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isUnavailable(error)) return undefined;
    throw error;
  }
}
