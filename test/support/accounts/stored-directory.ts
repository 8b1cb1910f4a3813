import type { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { DirectoryRows, RowsHead } from '../../../src/accounts/directory/rows/rows.ts';
import type { MacKeys } from '../../../src/accounts/directory/rows/stored-directory.ts';
import {
  type DirectoryContent,
  RowsMacs,
  StoredDirectory,
} from '../../../src/accounts/directory/rows/stored-directory.ts';
import { DIRECTORY_STORE, openDirectoryRows } from '../../../src/accounts/directory/rows/stored-rows.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { anchorOf, storeIdentity } from '../../../src/event-store/store-identity.ts';
import { MemoryStores } from '../engines/memory-stores.ts';

/** The keys of a deployment with these master keys, named by a number. The first one is current. */
export function macKeys(...names: readonly number[]): MacKeys {
  const keys = names.map((name) => Buffer.alloc(32, name));
  return { known: () => keys, current: () => keys[0] ?? Buffer.alloc(32) };
}

/** A stored directory, and its rows as seen by anyone who can write to them. */
export function openStored(saved = new MemoryStores()): { rows: DirectoryRows; stored: StoredDirectory } {
  const rows = openDirectoryRows(saved.open(DIRECTORY_STORE, systemClock));
  return { rows, stored: new StoredDirectory(rows, macKeys(1)) };
}

/** The directory as of the end of the log. */
async function contentAtEnd(
  store: EventStore,
  directory: Pick<Directory, 'states'>,
): Promise<DirectoryContent> {
  const [last] = (await store.readBackwards({ prefixes: ['account-'], limit: 1 })).events;
  const anchor = anchorOf(last === undefined ? [] : [last]);
  if (anchor === undefined) throw new Error('nothing was recorded');
  return { position: anchor.position, anchor, states: () => directory.states() };
}

/** Saves the directory as of the end of the log. Returns that position. */
export async function saveAll(
  { store, clock, stored }: { store: EventStore; clock: Clock; stored: StoredDirectory },
  directory: Pick<Directory, 'states'>,
): Promise<number> {
  const content = await contentAtEnd(store, directory);
  const storeId = await storeIdentity(store, clock);
  await stored.save(() => content, { storeId, signal: new AbortController().signal });
  return content.position;
}

/** Changes the head of the stored rows and gives them a valid MAC, as nobody without the master key can. */
export async function saveHead(rows: DirectoryRows, change: Partial<RowsHead>): Promise<void> {
  const checkpoint = await rows.checkpoint();
  if (checkpoint === undefined) throw new Error('nothing is stored');
  const changed = { ...checkpoint, ...change };
  const macs = new RowsMacs([macKeys(1).current()], changed);
  for await (const digests of rows.digests()) macs.add(digests);
  const [mac = ''] = macs.hex();
  await rows.save([], { ...changed, mac }, checkpoint.mac);
}
