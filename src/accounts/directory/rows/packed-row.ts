import { hash } from 'node:crypto';
import type { AccountKey } from '../../../domain/account.ts';
import type { AccountState, PlacedEvent } from '../fold/directory-entry.ts';
import type { PackedAccount } from '../fold/packed-account.ts';
import type { DirectoryRow, NewRow } from './rows.ts';

/**
 * The version of the row format below, of the checkpoint, and of how events are folded. Raise it when one of them
 * changes (an `Account` gets another shape, or an event another meaning), or when stored rows may lack an event. Rows
 * of an older version are rebuilt from the events.
 */
export const DIRECTORY_VERSION = 1;
const LINE_FEED = 10;

/** The first line of a row, as JSON. Members that most accounts lack are left out. The account's text follows it. */
interface RowHead {
  readonly unreadable?: AccountState['unreadable'];
  readonly known?: Pick<PackedAccount, 'prefixes' | 'masterKeys'> & { readonly disabledWebhooks?: number };
  readonly lastKeys?: readonly (readonly [string, AccountKey])[];
  readonly keyEvents?: readonly (readonly [string, PlacedEvent])[];
}

export function packedRow(state: AccountState): NewRow {
  const { id, revision, position, unreadable, packed, lastKeys, keyEvents } = state;
  const { prefixes, masterKeys, disabledWebhooks, bytes, from, to } = packed ?? NO_ACCOUNT;
  const head: RowHead = {
    ...(unreadable && { unreadable }),
    ...(packed && { known: { prefixes, masterKeys, ...(disabledWebhooks > 0 && { disabledWebhooks }) } }),
    ...(lastKeys && { lastKeys: [...lastKeys] }),
    ...(keyEvents && { keyEvents: [...keyEvents] }),
  };
  const row = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), bytes.subarray(from, to)]);
  return {
    ...{ accountId: id, revision, position, packed: row, digest: digestOf(row) },
    prefixes: [...prefixes, ...(lastKeys?.keys() ?? [])],
  };
}

const NO_ACCOUNT: PackedAccount = {
  ...{ bytes: new Uint8Array(), from: 0, to: 0 },
  ...{ prefixes: [], disabledWebhooks: 0, masterKeys: [] },
};

export function digestOf(packed: Uint8Array): string {
  return hash('sha256', packed);
}

/** A row that shares its bytes with others. */
export interface RowInBytes extends Omit<DirectoryRow, 'packed'> {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}

/** Reads a row. The account stays packed, in these bytes. */
export function unpackedRow({ accountId, revision, position, bytes, from, to }: RowInBytes): AccountState {
  const textFrom = bytes.indexOf(LINE_FEED, from) + 1;
  const line = bytes.toString('utf8', from, textFrom);
  const { unreadable = null, known, lastKeys, keyEvents } = JSON.parse(line) as RowHead;
  return {
    id: accountId,
    revision,
    position,
    unreadable,
    packed: known && {
      bytes,
      from: textFrom,
      to,
      prefixes: known.prefixes,
      masterKeys: known.masterKeys,
      disabledWebhooks: known.disabledWebhooks ?? 0,
    },
    lastKeys: lastKeys && new Map(lastKeys),
    keyEvents: keyEvents && new Map(keyEvents),
  };
}
