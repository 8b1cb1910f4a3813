import { hash } from 'node:crypto';
import type { AccountKey } from '../../../domain/account.ts';
import type { AccountState, PlacedEvent } from '../fold/directory-entry.ts';
import type { PackedAccount } from '../fold/packed-account.ts';
import type { DirectoryRow, NewRow } from './rows.ts';

/**
 * Of the form below and of what accounts are folded to. Raise it when either changes: an `Account` with another shape,
 * or an event with another meaning. Up to version 4 the accounts were stored in parts, without rows.
 */
export const DIRECTORY_VERSION = 6;
const LINE_FEED = 10;

/** The first line of a row, as JSON; the account's text follows. */
interface RowHead extends Pick<AccountState, 'unreadable'> {
  readonly known: Omit<PackedAccount, 'bytes' | 'from' | 'to'> | null;
  readonly lastKeys: readonly (readonly [string, AccountKey])[] | null;
  readonly keyEvents: readonly (readonly [string, PlacedEvent])[] | null;
}

export function rowOf(state: AccountState): NewRow {
  const { id, revision, position, unreadable, packed, lastKeys, keyEvents } = state;
  const { bytes, from, to, ...known } = packed ?? NO_ACCOUNT;
  const head: RowHead = {
    unreadable,
    known: packed === undefined ? null : known,
    lastKeys: lastKeys ? [...lastKeys] : null,
    keyEvents: keyEvents ? [...keyEvents] : null,
  };
  const row = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), bytes.subarray(from, to)]);
  const prefixes = [...known.prefixes, ...(lastKeys?.keys() ?? [])];
  return { accountId: id, revision, position, packed: row, digest: digestOf(row), prefixes };
}

const NO_ACCOUNT: PackedAccount = {
  ...{ bytes: new Uint8Array(), from: 0, to: 0 },
  ...{ prefixes: [], disabledWebhooks: 0, masterKeys: [] },
};

export function digestOf(packed: Uint8Array): string {
  return hash('sha256', packed);
}

/** Without a spread, which takes a microsecond, of a hundred thousand. */
function packedIn(
  { prefixes, disabledWebhooks, masterKeys }: NonNullable<RowHead['known']>,
  { bytes, from, to }: Pick<PackedAccount, 'bytes' | 'from' | 'to'>,
): PackedAccount {
  return { bytes, from, to, prefixes, disabledWebhooks, masterKeys };
}

/** A row among others in the same bytes. */
export interface RowInBytes extends Omit<DirectoryRow, 'packed'> {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}

/** The account stays packed, in these bytes. */
export function stateOf({ accountId, revision, position, bytes, from, to }: RowInBytes): AccountState {
  const textFrom = bytes.indexOf(LINE_FEED, from) + 1;
  const line = bytes.toString('utf8', from, textFrom);
  const { unreadable, known, lastKeys, keyEvents } = JSON.parse(line) as RowHead;
  return {
    id: accountId,
    revision,
    position,
    unreadable,
    packed: known === null ? undefined : packedIn(known, { bytes, from: textFrom, to }),
    lastKeys: lastKeys === null ? undefined : new Map(lastKeys),
    keyEvents: keyEvents === null ? undefined : new Map(keyEvents),
  };
}
