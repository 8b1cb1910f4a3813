import { createHmac, type Hmac } from 'node:crypto';
import type { Clock } from '../../../base/clock.ts';
import { world } from '../../../base/world.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import {
  type Anchor,
  continuesAfter,
  mismatchOf,
  storeIdentity,
} from '../../../event-store/store-identity.ts';
import type { AccountState } from '../fold/directory-entry.ts';
import { DIRECTORY_VERSION, digestOf, packedRow } from './packed-row.ts';
import {
  type DirectoryRow,
  type DirectoryRows,
  type RowDigest,
  type RowsCheckpoint,
  type RowsHead,
  rowsIn,
} from './rows.ts';
import { type SharedPage, type SharedRows, sharedPage } from './shared-rows.ts';

/** The version of a checkpoint whose rows are not all saved yet. */
const UNFINISHED = 0;
/** The number of times that the rows are read again because another process saved some of them meanwhile. */
const MAX_READS = 5;
const ROWS_A_COMMIT = 500;
const ROWS_A_TURN = 5_000;

export type Loading =
  | { readonly kind: 'none' }
  | { readonly kind: 'loaded'; readonly loaded: SharedRows }
  /** The events must be read from the first on, and all rows saved again. */
  | { readonly kind: 'unusable'; readonly checkpoint: RowsCheckpoint; readonly reason: string };

/** The keys of the rows' MAC, derived from the master keys. */
export interface MacKeys {
  /** The keys to check a MAC with; none if there is no master key yet. */
  known(): readonly Buffer[];
  /** The key to compute a MAC with. */
  current(): Buffer;
}

/** A directory as of now. */
export interface DirectoryContent {
  /** Every account event up to here is included. */
  readonly position: number;
  /** `undefined` if there has been no account event yet. */
  readonly anchor: Anchor | undefined;
  states(): Iterable<AccountState>;
}

/** The stored directory. Everything that is read from it was saved by a process with one of the master keys. */
export class StoredDirectory {
  readonly #rows: DirectoryRows;
  readonly #keys: MacKeys;

  constructor(rows: DirectoryRows, keys: MacKeys) {
    this.#rows = rows;
    this.#keys = keys;
  }

  /** Loads and checks the rows. Rejects with `STORE_UNAVAILABLE` while an engine is unavailable. */
  async load(store: EventStore, clock: Clock): Promise<Loading> {
    for (let reads = 1; ; reads++) {
      const checkpoint = await this.#rows.checkpoint();
      if (checkpoint === undefined || checkpoint.version === UNFINISHED) return { kind: 'none' };
      const keys = this.#keys.known();
      const noKey = keys.length === 0 ? 'there is no master key to check them with' : undefined;
      const reason = noKey ?? (await mismatch(checkpoint, store, clock));
      if (reason !== undefined) return { kind: 'unusable', checkpoint, reason };
      const macs = new RowsMacs(keys, checkpoint);
      const pages: SharedPage[] = [];
      for await (const page of this.#rows.rows()) {
        macs.add(rowsIn(page).map(digested));
        pages.push(sharedPage(page));
      }
      const { mac, anchor } = checkpoint;
      const loaded = { position: continuesAfter(checkpoint), anchor, pages };
      if (macs.hex().includes(mac)) return { kind: 'loaded', loaded };
      const isAsBefore = (await this.#rows.checkpoint())?.mac === mac;
      if (!isAsBefore && reads < MAX_READS) continue;
      const changed = 'a row or the checkpoint is not as it was saved, or was saved with another master key';
      return { kind: 'unusable', checkpoint, reason: changed };
    }
  }

  /**
   * Saves what has changed since the last save, in short steps, each of which leaves rows to start from. If the stored
   * rows have no valid MAC, belong to another store, or still have the MAC with which they were found `unusable`, every
   * account is saved again. Returns true if everything is saved, by this process or another: of several processes only
   * one saves at a time, and none replaces rows with older ones.
   */
  async save(
    content: () => DirectoryContent,
    { storeId, unusable, signal }: { storeId: string; unusable?: string | undefined; signal: AbortSignal },
  ): Promise<boolean> {
    const key = this.#keys.current();
    const found = await this.#rows.checkpoint();
    if (found !== undefined && found.version > DIRECTORY_VERSION) return true; // a newer version of the service keeps them
    const listed = found?.mac === unusable ? undefined : await this.#list(found, storeId);
    const present = content();
    if (present.anchor === undefined) return true;
    if (listed !== undefined && listed.checkpoint.anchor.position > present.anchor.position) return true;
    const digests = listed?.digests ?? new Map<number, RowDigest>();
    const changed: AccountState[] = [];
    for (const state of present.states())
      if (digests.get(state.id)?.position !== state.position) changed.push(state);
    if (listed !== undefined && changed.length === 0) return true;

    const begun = {
      version: UNFINISHED,
      storeId,
      position: 0,
      anchor: present.anchor,
      mac: world.randomUUID(),
    };
    let stored: RowsCheckpoint = listed?.checkpoint ?? begun;
    if (stored === begun) await this.#rows.clear(begun);
    for (let from = 0; from < changed.length; from += ROWS_A_COMMIT) {
      signal.throwIfAborted();
      const isLast = from + ROWS_A_COMMIT >= changed.length;
      const rows = changed.slice(from, from + ROWS_A_COMMIT).map(packedRow);
      const { anchor = present.anchor } = content();
      for (const row of rows) digests.set(row.accountId, digested(row));
      const position = isLast ? present.position : stored.position;
      const head = { version: DIRECTORY_VERSION, storeId, position, anchor };
      const next: RowsCheckpoint =
        stored.version === UNFINISHED && !isLast ? stored : { ...head, mac: await macOf(key, head, digests) };
      if (!(await this.#rows.save(rows, next, stored.mac))) return false;
      stored = next;
      await world.nextTurn();
    }
    return true;
  }

  /** The accounts that may have a key with this prefix. The caller checks their streams. */
  owners(prefix: string): Promise<number[]> {
    return this.#rows.owners(prefix);
  }

  close(): Promise<void> {
    return this.#rows.close();
  }

  /** Returns the checkpoint and the digests of the rows, if their MAC is right. */
  async #list(
    checkpoint: RowsCheckpoint | undefined,
    storeId: string,
  ): Promise<{ checkpoint: RowsCheckpoint; digests: Map<number, RowDigest> } | undefined> {
    if (checkpoint?.version !== DIRECTORY_VERSION || checkpoint.storeId !== storeId) return undefined;
    const macs = new RowsMacs(this.#keys.known(), checkpoint);
    const digests = new Map<number, RowDigest>();
    for await (const rows of this.#rows.digests()) {
      macs.add(rows);
      for (const row of rows) digests.set(row.accountId, row);
    }
    return macs.hex().includes(checkpoint.mac) ? { checkpoint, digests } : undefined;
  }
}

function digested({ accountId, revision, position, packed }: DirectoryRow): RowDigest {
  return { accountId, revision, position, digest: digestOf(packed) };
}

async function mismatch(checkpoint: RowsHead, store: EventStore, clock: Clock): Promise<string | undefined> {
  if (checkpoint.version !== DIRECTORY_VERSION)
    return `has version ${checkpoint.version} and this program reads ${DIRECTORY_VERSION}`;
  return mismatchOf(checkpoint, { store, storeId: await storeIdentity(store, clock) });
}

async function macOf(key: Buffer, head: RowsHead, digests: ReadonlyMap<number, RowDigest>): Promise<string> {
  const macs = new RowsMacs([key], head);
  const inOrder = [...digests.values()].sort((a, b) => a.accountId - b.accountId);
  for (let from = 0; from < inOrder.length; from += ROWS_A_TURN) {
    macs.add(inOrder.slice(from, from + ROWS_A_TURN));
    await world.nextTurn();
  }
  const [mac = ''] = macs.hex();
  return mac;
}

/**
 * Computes the HMAC-SHA256 over the checkpoint and over the account, revision, position and digest of every row, in the
 * order of the account ids. Since one MAC covers all rows, none can be removed or replaced by an older one.
 */
export class RowsMacs {
  readonly #hmacs: readonly Hmac[];

  /** Computes one MAC with each of the keys. */
  constructor(keys: readonly Buffer[], { version, storeId, position, anchor }: RowsHead) {
    const { position: at, stream, revision, recordedAtMs } = anchor;
    const head = JSON.stringify([version, storeId, position, at, stream, revision, recordedAtMs]);
    this.#hmacs = keys.map((key) => createHmac('sha256', key).update(`${head}\n`));
  }

  add(rows: readonly RowDigest[]): void {
    let lines = '';
    for (const { accountId, revision, position, digest } of rows)
      lines += `${accountId} ${revision} ${position} ${digest}\n`;
    for (const hmac of this.#hmacs) hmac.update(lines);
  }

  /** The MACs in hexadecimal, in the order of the keys. */
  hex(): string[] {
    return this.#hmacs.map((hmac) => hmac.digest('hex'));
  }
}
