import type { KnownKey } from '../../../src/accounts/caller.ts';
import { type AccountDetails, accessIn, keyIn } from '../../../src/accounts/rows/rows-of.ts';
import {
  ACCOUNTS,
  type AccountRow,
  KEYS,
  type KeyRow,
  MEMBERS,
  type MemberRow,
} from '../../../src/accounts/rows/tables.ts';
import type { Account, AccountKey } from '../../../src/domain/account.ts';
import type { Position } from '../../../src/event-store/recorded-event.ts';
import type { Tables } from '../../../src/tables/tables.ts';

const ROWS_A_READ = 1_000;

/** A key as its row has it, with everything that a request and an attempt need. */
export interface StoredKey extends KnownKey {
  /** The last event that ended the key's deliveries. */
  readonly ended: { readonly position: Position; readonly reason: string } | undefined;
  /** When its webhook was enabled last. */
  readonly enabledAtMs: number | undefined;
}

/** An account as its rows have it. */
export interface StoredAccount {
  readonly id: number;
  /** The revision of its last event, and the position of the last event that changed its rows. */
  readonly revision: number;
  readonly position: Position;
  /** `undefined` if the account can't be read. */
  readonly account: Account | undefined;
  /** The keys by prefix. Those of an account that can't be read are as they were last read. */
  readonly keys: ReadonlyMap<string, AccountKey>;
  readonly unreadable: { readonly position: Position; readonly reason: string } | null;
}

type Reads = Pick<Tables, 'get' | 'find'>;

/** Reads keys by their prefixes. Those that are not known are left out. */
export async function readKeys(
  tables: Pick<Tables, 'get'>,
  prefixes: readonly string[],
): Promise<Map<string, StoredKey>> {
  const rows = await tables.get(KEYS, prefixes);
  return new Map(rows.map((row) => [row.prefix, storedKey(row)]));
}

/** Reads a whole account; `undefined` if it has no events. */
export async function readAccount(tables: Reads, id: number): Promise<StoredAccount | undefined> {
  const [row] = await tables.get(ACCOUNTS, [id]);
  if (row === undefined) return undefined;
  const ofAccount = { index: 'by_account', equals: { account_id: id }, limit: ROWS_A_READ } as const;
  const keys: KeyRow[] = [];
  for (let after: KeyRow | undefined; ; ) {
    const found = await tables.find(KEYS, { ...ofAccount, after });
    for (const row of found) keys.push(row);
    after = found.at(-1);
    if (found.length < ROWS_A_READ) break;
  }
  const members: MemberRow[] = [];
  for (let after: MemberRow | undefined; ; ) {
    const found = await tables.find(MEMBERS, { ...ofAccount, after });
    for (const row of found) members.push(row);
    after = found.at(-1);
    if (found.length < ROWS_A_READ) break;
  }
  return storedAccount(row, keys, members);
}

function storedKey(row: KeyRow): StoredKey {
  const { account_id: accountId, unreadable, ended_at, ended_reason, enabled_at } = row;
  const ended = ended_at === null ? undefined : { position: ended_at, reason: ended_reason ?? '' };
  const facts = { key: keyIn(row), access: accessIn(row.access), enabledAtMs: enabled_at ?? undefined };
  return { accountId, unreadable, ended, ...facts };
}

/** Puts an account together from its rows. */
export function storedAccount(
  { id, revision, position, name, details, unreadable, unreadable_at }: AccountRow,
  keyRows: readonly KeyRow[],
  memberRows: readonly MemberRow[],
): StoredAccount {
  const keys = new Map(keyRows.map((row) => [row.prefix, keyIn(row)]));
  const groups = new Map<number, { readonly name: string }>();
  const corporates = new Map<number, { readonly name: string; readonly groupId: number | null }>();
  for (const { kind, number, name: named, group_id: groupId } of memberRows)
    if (kind === 'group') groups.set(number, { name: named });
    else corporates.set(number, { name: named, groupId });
  const account =
    details === null ? undefined : { id, name: name ?? '', ...detailsIn(details), groups, corporates, keys };
  const fault = unreadable === null ? null : { position: unreadable_at ?? 0, reason: unreadable };
  return { id, revision, position, account, keys, unreadable: fault };
}

function detailsIn(text: string): AccountDetails {
  const { profiles, ...rest } = JSON.parse(text) as Omit<AccountDetails, 'profiles'> & {
    readonly profiles: readonly [
      string,
      AccountDetails['profiles'] extends ReadonlyMap<string, infer P> ? P : never,
    ][];
  };
  return { ...rest, profiles: new Map(profiles) };
}
