import { Directory, type DirectoryKey } from '../../../projections/directory.ts';
import type { DirectoryAccount } from '../../../projections/directory-entry.ts';
import { systemClock } from '../../clock.ts';
import { ACCOUNT_STREAMS, accountStream } from '../../domain/account-events.ts';
import { isUnavailable } from '../../errors.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/read-to-end.ts';
import { readSkipped } from '../../event-store/skipped-events.ts';
import { applyToDirectory } from './apply-to-directory.ts';
import { restoreDirectory } from './restore-directory.ts';
import { mentioning } from './snapshots/mentioning.ts';
import type { SnapshotSource } from './snapshots/shared.ts';

/**
 * The directory as of now, for a command: every account event up to the present end of the log. With `snapshots` it
 * starts from the stored one; where that can't be used, or its store is unavailable, from the first event. Rejects with
 * the event store's errors.
 */
export async function loadDirectory(store: EventStore, snapshots?: SnapshotSource): Promise<Directory> {
  const directory = new Directory();
  if (snapshots !== undefined) await startFromSnapshot(directory, snapshots, store);
  const skipped = await readSkipped(store);
  for await (const batch of readToEnd(store, { prefixes: [ACCOUNT_STREAMS], after: directory.position })) {
    for (const event of batch.events) applyToDirectory(directory, event, skipped);
    directory.advance(batch.position);
  }
  return directory;
}

/** One account as of now, by its stream alone; `undefined` where it was never opened. Rejects with the store's errors. */
export async function loadAccount(
  store: Pick<EventStore, 'readStream'>,
  accountId: number,
): Promise<DirectoryAccount | undefined> {
  const directory = new Directory();
  const skipped = await readSkipped(store);
  for (const event of await store.readStream(accountStream(accountId)))
    applyToDirectory(directory, event, skipped);
  return directory.account(accountId);
}

/**
 * The key with this prefix as of now, by its account's stream alone; `undefined` where there is none. Of the snapshot
 * only the accounts near it are read. Rejects with the event store's errors.
 */
export async function loadKey(
  store: EventStore,
  snapshots: SnapshotSource,
  prefix: string,
): Promise<DirectoryKey | undefined> {
  const near = await loadDirectory(store, mentioning(prefix, snapshots)); // knows the owner, and little else
  const owner = near.key(prefix)?.entry;
  const entry = owner && (await loadAccount(store, owner.id));
  const key = entry?.keys?.get(prefix);
  return entry === undefined || key === undefined ? undefined : { entry, key };
}

/** An operator can change access while only the event store is available: then reading takes longer. */
async function startFromSnapshot(
  directory: Directory,
  snapshots: SnapshotSource,
  store: EventStore,
): Promise<void> {
  try {
    await restoreDirectory({ directory, snapshots, store, clock: systemClock });
  } catch (error) {
    if (!isUnavailable(error)) throw error;
  }
}
