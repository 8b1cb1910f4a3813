import type { Position } from '../../../event-store/recorded-event.ts';
import type { Anchor, MadeFrom } from '../../../event-store/store-identity.ts';

/** One account as it is stored. */
export interface DirectoryRow {
  readonly accountId: number;
  /** The revision and position of its last event. */
  readonly revision: number;
  readonly position: Position;
  /** Written by `rowOf`. */
  readonly packed: Uint8Array;
}

/**
 * Rows one after the other in shared bytes. With a buffer for each, reading 100,000 rows at a start takes twice as
 * long.
 */
export interface RowsPage {
  readonly places: readonly (readonly [
    accountId: number,
    revision: number,
    position: Position,
    bytes: number,
  ])[];
  readonly packed: Uint8Array;
}

export function pageOf(rows: readonly DirectoryRow[]): RowsPage {
  return {
    places: rows.map(({ accountId, revision, position, packed }) => [
      accountId,
      revision,
      position,
      packed.length,
    ]),
    packed: Buffer.concat(rows.map(({ packed }) => packed)),
  };
}

export function rowsIn({ places, packed }: RowsPage): DirectoryRow[] {
  let at = 0;
  return places.map(([accountId, revision, position, bytes]) => {
    const from = at;
    at += bytes;
    return { accountId, revision, position, packed: packed.subarray(from, at) };
  });
}

/** The part of a row that the MAC covers. */
export interface RowDigest extends Omit<DirectoryRow, 'packed'> {
  /** SHA-256 of `packed`, hexadecimal. */
  readonly digest: string;
}

export interface NewRow extends DirectoryRow, RowDigest {
  /** The prefixes of its keys. */
  readonly prefixes: readonly string[];
}

/** The version and position of the rows. */
export interface RowsHead extends MadeFrom {
  /** The version of the row format: rows of another version are not read. */
  readonly version: number;
  /** Every account event up to here is in the rows. They may contain later ones too. */
  readonly position: Position;
  readonly anchor: Anchor;
}

export interface RowsCheckpoint extends RowsHead {
  /** The MAC of the rest of this checkpoint and every row; any unique text while the rows are not complete. */
  readonly mac: string;
}

/**
 * Keeps the directory between two starts, one row for each account, so that a process need not read the whole log. It
 * may be lost at any time: it is then rebuilt from the events. Nothing in it is trusted without its MAC.
 *
 * - `rows` and `digests` return every row in the order of the account ids, in short steps. They are not a snapshot: a
 *   row that is saved meanwhile is returned in its old or its new state.
 * - `save` replaces the rows of these accounts and the checkpoint in one commit. If the MAC of the checkpoint is not
 *   `expected`, another process has saved since: it returns false and changes nothing.
 * - `clear` puts this checkpoint, then removes every row in short steps, as long as the checkpoint stays.
 * - `owners` returns the accounts that have or had a key with the prefix, by one look-up.
 * - After `close` every call rejects with `STORE_CLOSED`.
 */
export interface DirectoryRows {
  checkpoint(): Promise<RowsCheckpoint | undefined>;
  rows(): AsyncIterable<RowsPage>;
  digests(): AsyncIterable<readonly RowDigest[]>;
  owners(prefix: string): Promise<number[]>;
  save(rows: readonly NewRow[], checkpoint: RowsCheckpoint, expected: string): Promise<boolean>;
  clear(checkpoint: RowsCheckpoint): Promise<void>;
  close(): Promise<void>;
}
