import type { Position } from '../../../event-store/recorded-event.ts';
import type { Anchor, MadeFrom } from '../../../event-store/store-identity.ts';

/** One account as it is stored. */
export interface DirectoryRow {
  readonly accountId: number;
  /** Of its last event. */
  readonly revision: number;
  readonly position: Position;
  /** Written by `rowOf`. */
  readonly packed: Uint8Array;
}

/** Rows, one after the other in the same bytes: with bytes of their own a hundred thousand take a start twice as long to read. */
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

/** What the seal covers of a row. */
export interface RowDigest extends Omit<DirectoryRow, 'packed'> {
  /** SHA-256 of `packed`, hexadecimal. */
  readonly digest: string;
}

export interface NewRow extends DirectoryRow, RowDigest {
  /** Of its keys. */
  readonly prefixes: readonly string[];
}

/** What the rows are as of. */
export interface RowsHead extends MadeFrom {
  /** Of the rows' form: rows of another version are not read. */
  readonly version: number;
  /** Every account event up to here is in the rows; they may have later ones too. */
  readonly position: Position;
  readonly anchor: Anchor;
}

export interface RowsCheckpoint extends RowsHead {
  /** Of everything else here and of every row; in the checkpoint of rows that are not complete yet, any unique text. */
  readonly seal: string;
}

/**
 * Keeps the directory between two starts, one row for each account, so that a process need not read the whole log. It may
 * be lost at any time: then it is built from the events. Nothing of it is believed without its seal.
 *
 * - `rows` and `digests` return every row in the order of the account ids, some at a time, each in a short step. They are
 *   not one moment: of a row that is saved meanwhile either state is returned.
 * - `save` replaces the rows of these accounts and the checkpoint in one commit. It returns false and changes nothing
 *   where the checkpoint has another seal than `expected`: another process has saved since.
 * - `clear` puts this checkpoint, then removes every row, in short steps, as long as the checkpoint stays.
 * - `owners` returns the accounts of which a row had the prefix, by one look-up.
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
