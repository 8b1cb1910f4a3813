import { systemClock } from '../../base/clock.ts';
import { isUnavailable } from '../../base/errors.ts';
import { ACCOUNT_STREAMS, accountStream } from '../../domain/account-events.ts';
import { occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts, readToEnd } from '../../event-store/reads.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';
import { applyToDirectory, DIRECTORY_STREAMS, firstShown, restoreDirectory } from './apply-to-directory.ts';
import { Directory, type DirectoryKey } from './fold/directory.ts';
import type { DirectoryAccount } from './fold/directory-entry.ts';
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
 * Loads one account as of now, or as of a given time, from its stream alone; `undefined` if it had not been opened.
 * Rejects with the store's errors.
 */
export async function loadAccount(
  store: Pick<EventStore, 'readStream'>,
  accountId: number,
  { untilMs = Infinity }: { readonly untilMs?: number | undefined } = {},
): Promise<DirectoryAccount | undefined> {
  const skipped = await readSkipped(store);
  const events = await store.readStream(accountStream(accountId));
  const later = events.findIndex((event) => occurredAtMs(event) > untilMs);
  return accountBy(later < 0 ? events : events.slice(0, later), accountId, skipped);
}

/** Does the same as `loadAccount` for many accounts, with only some of them in memory at a time. */
export async function* loadAccounts(
  store: Pick<EventStore, 'readStream' | 'readStreams'>,
  accountIds: readonly number[],
): AsyncGenerator<readonly [accountId: number, entry: DirectoryAccount | undefined], void> {
  const skipped = await readSkipped(store);
  const idOf = new Map(accountIds.map((id) => [accountStream(id), id]));
  for await (const [stream, events] of readInParts(store, [...idOf.keys()])) {
    const id = idOf.get(stream) ?? 0;
    yield [id, accountBy(events, id, skipped)];
  }
}

function accountBy(
  events: readonly RecordedEvent[],
  accountId: number,
  skipped: SkippedEvents,
): DirectoryAccount | undefined {
  const directory = new Directory();
  for (const event of events) applyToDirectory(directory, event, skipped);
  return directory.account(accountId);
}

/**
 * Loads the key with this prefix as of now, from its account's stream alone; `undefined` if there is none. The stored
 * directory only says which account to look at. If it does not know the key, the whole directory is read. A key whose event
 * the stream no longer shows is as the directory knows it. Rejects with the event store's errors.
 */
export async function loadKey(
  store: EventStore,
  stored: StoredDirectory,
  prefix: string,
): Promise<DirectoryKey | undefined> {
  for (const id of (await reachable(stored.owners(prefix))) ?? []) {
    const found = await keyOfAccount(store, id, prefix);
    if (found !== undefined) return found;
  }
  const found = (await loadDirectory(store, stored)).key(prefix);
  return found && ((await keyOfAccount(store, found.entry.id, prefix)) ?? found);
}

async function keyOfAccount(
  store: EventStore,
  accountId: number,
  prefix: string,
): Promise<DirectoryKey | undefined> {
  const entry = await loadAccount(store, accountId);
  const key = entry?.keys?.get(prefix);
  return entry === undefined || key === undefined ? undefined : { entry, key };
}

/**
 * Returns `undefined` if the stored directory is unavailable. An operator can then still change access with the event
 * store alone, although reading takes longer.
 */
async function reachable<T>(reading: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isUnavailable(error)) return undefined;
    throw error;
  }
}
