import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { packedRow } from '../../../src/accounts/directory/rows/packed-row.ts';
import type { DirectoryRows } from '../../../src/accounts/directory/rows/rows.ts';
import {
  type DirectoryContent,
  StoredDirectory,
} from '../../../src/accounts/directory/rows/stored-directory.ts';
import { DIRECTORY_STORE } from '../../../src/accounts/directory/rows/stored-rows.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { drop } from '../../../src/tables/tables.ts';
import { MemoryStores } from '../engines/memory-stores.ts';
import { keyIssued, onKey, opened } from './account-samples.ts';
import { macKeys, openStored } from './stored-directory.ts';

const STORE = 'a store';
export const ANCHOR = { position: 12, stream: 'account-7', revision: 3, recordedAtMs: 5_000 };

const NAMED = {
  ...{ stream: 'operations', revision: 0, position: 1, id: 'named', recordedAtMs: 0 },
  ...{ type: 'StoreNamed', data: { store_id: STORE }, metadata: {} },
};

/** Two processes on the same rows. */
function started() {
  const stores = new MemoryStores();
  const [{ rows }, { rows: other }] = [openStored(stores), openStored(stores)];
  /** Removes the row of an account, as anyone who can write to the engine may. */
  async function lose(accountId: number): Promise<void> {
    const [table] = DIRECTORY_STORE.tables;
    if (table !== undefined) await stores.open(DIRECTORY_STORE, systemClock).write([drop(table, accountId)]);
  }
  return { rows, other, lose };
}

export const saveOptions = { storeId: STORE, signal: new AbortController().signal };

/** Accounts 7, whose key is on, and 9; then the key is switched off. */
export async function saved() {
  const { rows, other, lose } = started();
  const directory = new Directory();
  const at = { position: 0 };
  const apply = (id: number, revision: number, event: AccountEvent): void => {
    at.position += 1;
    const place = { position: at.position, stream: `account-${id}`, revision };
    directory.apply({ ...place, decoded: { ok: true, event, atMs: 0 } });
  };
  const content = (): DirectoryContent => ({
    position: at.position,
    anchor: { ...ANCHOR, position: at.position },
    states: () => directory.states(),
  });
  apply(7, 0, opened());
  apply(7, 1, keyIssued());
  apply(9, 0, opened('Other', 9));
  const stored = new StoredDirectory(rows, macKeys(1));
  await stored.save(content, saveOptions);
  const [before] = [...directory.states()].map(packedRow);
  const former = await rows.checkpoint();
  apply(7, 2, onKey('KeySwitchedOff'));
  await stored.save(content, saveOptions);
  const checkpoint = await rows.checkpoint();
  if (before === undefined || former === undefined || checkpoint === undefined) throw new Error('not saved');
  return { rows, other, lose, directory, apply, content, stored, before, former, checkpoint };
}

/** Loads the rows like a process whose event store has all events. */
export async function load(rows: DirectoryRows, keys = macKeys(1)) {
  const store = {
    readStream: async (stream: string) =>
      stream === 'operations'
        ? [NAMED]
        : [{ ...ANCHOR, position: (await rows.checkpoint())?.anchor.position ?? 0 }],
    head: async () => Infinity,
  };
  return new StoredDirectory(rows, keys).load(store as never, { now: () => 0 });
}
