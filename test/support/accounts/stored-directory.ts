import type { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { DirectoryRows, RowsHead } from '../../../src/accounts/directory/rows/rows.ts';
import {
  type DirectoryContent,
  Sealing,
  StoredDirectory,
} from '../../../src/accounts/directory/rows/stored-directory.ts';
import type { Clock } from '../../../src/base/clock.ts';
import { MemoryRows, openMemoryDirectoryRows } from '../../../src/engines/memory/directory-rows.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { anchorOf, storeIdentity } from '../../../src/event-store/store-identity.ts';
import { sealKeys } from './seal-keys.ts';

/** A stored directory, and its rows as whoever can write to them sees them. */
export function openStored(saved = new MemoryRows()): { rows: DirectoryRows; stored: StoredDirectory } {
  const rows = openMemoryDirectoryRows(saved);
  return { rows, stored: new StoredDirectory(rows, sealKeys(1)) };
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

/** Saves the directory as that of the end of the log; returns that position. */
export async function saveAll(
  { store, clock, stored }: { store: EventStore; clock: Clock; stored: StoredDirectory },
  directory: Pick<Directory, 'states'>,
): Promise<number> {
  const content = await contentAtEnd(store, directory);
  const storeId = await storeIdentity(store, clock);
  await stored.save(() => content, { storeId, signal: new AbortController().signal });
  return content.position;
}

/** Seals what is stored with another head, as nobody without the master key can. */
export async function reseal(rows: DirectoryRows, change: Partial<RowsHead>): Promise<void> {
  const checkpoint = await rows.checkpoint();
  if (checkpoint === undefined) throw new Error('nothing is stored');
  const changed = { ...checkpoint, ...change };
  const sealing = new Sealing([sealKeys(1).current()], changed);
  for await (const digests of rows.digests()) sealing.add(digests);
  const [seal = ''] = sealing.seals();
  await rows.save([], { ...changed, seal }, checkpoint.seal);
}
