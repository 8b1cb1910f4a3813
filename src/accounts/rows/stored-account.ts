import type { Account, AccountKey } from '../../domain/account.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { Tables } from '../../tables/tables.ts';
import type { RowReads } from './read-rows.ts';
import { type AccountDetails, detailsIn, keyIn } from './rows-of.ts';
import { ACCOUNTS, type AccountRow, KEYS, type KeyRow, MEMBERS, type MemberRow } from './tables.ts';

const ROWS_A_READ = 1_000;
const ACCOUNTS_A_READ = 200;

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

/** An account as its row alone describes it. `details` is `undefined` if the account can't be read. */
export interface AccountSummary extends Pick<StoredAccount, 'id' | 'revision' | 'unreadable'> {
  readonly name: string | null;
  readonly details: AccountDetails | undefined;
}

/** Reads the row of an account; `undefined` if it has no events. */
export async function readSummary(
  tables: Pick<Tables, 'get'>,
  id: number,
): Promise<AccountSummary | undefined> {
  const [row] = await tables.get(ACCOUNTS, [id]);
  return row && summaryOf(row);
}

/** Reads a whole account; `undefined` if it has no events. */
export async function readAccount(tables: RowReads, id: number): Promise<StoredAccount | undefined> {
  const [account] = await readAccounts(tables, [id]);
  return account;
}

/** Reads whole accounts in the order of their ids. Those that have no events are left out. */
export async function readAccounts(tables: RowReads, ids: readonly number[]): Promise<StoredAccount[]> {
  const rows = await tables.get(ACCOUNTS, [...new Set(ids)].sort(ascending));
  return withRows(rows, { equals: { account_id: rows.map(({ id }) => id) } }, tables);
}

/** Yields every account after this id, whole and in the order of the ids, with some of them in memory at a time. */
export async function* everyAccount(tables: RowReads, afterId = -1): AsyncGenerator<StoredAccount, void> {
  for (let after = { id: afterId }; ; ) {
    const rows = await tables.find(ACCOUNTS, { index: 'key', after, limit: ACCOUNTS_A_READ });
    yield* await withRows(rows, { range: { from: rows[0]?.id, to: rows.at(-1)?.id } }, tables);
    const last = rows.at(-1);
    if (last === undefined || rows.length < ACCOUNTS_A_READ) return;
    after = last;
  }
}

/** Yields the ids of all accounts, in ascending order. */
export async function* accountIds(tables: Pick<Tables, 'find'>): AsyncGenerator<number, void> {
  const rows = paged<Pick<AccountRow, 'id'>>((after) =>
    tables.find(ACCOUNTS, { index: 'key', after, limit: ROWS_A_READ, columns: ['id'] }),
  );
  for await (const { id } of rows) yield id;
}

/** Yields the rows of all keys, or of one account's, by account and prefix. */
export function everyKey(tables: Pick<Tables, 'find'>, accountId?: number): AsyncGenerator<KeyRow, void> {
  const range = { from: accountId, to: accountId };
  return paged((after) => tables.find(KEYS, { index: 'by_account', range, after, limit: ROWS_A_READ }));
}

/** Yields the rows of the keys whose webhook secret is encrypted with this master key, active or not. */
export function everySecret(tables: Pick<Tables, 'find'>, masterKeyId: string): AsyncGenerator<KeyRow, void> {
  const equals = { master_key: masterKeyId };
  return paged((after) => tables.find(KEYS, { index: 'by_master_key', equals, after, limit: ROWS_A_READ }));
}

/** Returns the ids of the master keys that encrypt webhook secrets. */
export async function masterKeysInUse(tables: Pick<Tables, 'firsts'>): Promise<string[]> {
  const found = await tables.firsts(KEYS, { index: 'by_master_key', of: 'master_key' });
  return found.flatMap(({ master_key: id }) => id ?? []);
}

/** Yields the rows of active keys with a webhook, by its state and the account. */
export function everyWebhook(tables: Pick<Tables, 'find'>): AsyncGenerator<KeyRow, void> {
  return paged((after) => tables.find(KEYS, { index: 'by_webhook', after, limit: ROWS_A_READ }));
}

/** Yields the rows of the accounts that can't be read, by the position of the event. */
export function unreadableAccounts(tables: Pick<Tables, 'find'>): AsyncGenerator<AccountRow, void> {
  return paged((after) => tables.find(ACCOUNTS, { index: 'by_unreadable', after, limit: ROWS_A_READ }));
}

async function* paged<R>(read: (after: R | undefined) => Promise<R[]>): AsyncGenerator<R, void> {
  for (let after: R | undefined; ; ) {
    const found = await read(after);
    yield* found;
    after = found.at(-1);
    if (found.length < ROWS_A_READ) return;
  }
}

/** All rows of an account. */
export interface AccountRows {
  readonly account: AccountRow | undefined;
  readonly keys: readonly KeyRow[];
  readonly members: readonly MemberRow[];
}

/** Reads all rows of some accounts, also those of an account that has no row of its own. */
export async function rowsOfAccounts(
  tables: RowReads,
  ids: readonly number[],
): Promise<(id: number) => AccountRows> {
  const accounts = new Map((await tables.get(ACCOUNTS, ids)).map((row) => [row.id, row]));
  const others = await belonging(tables, { equals: { account_id: ids } });
  return (id) => ({ account: accounts.get(id), ...others(id) });
}

/** Yields the ids of the accounts to which keys or corporates and groups belong, some of them many times. */
export async function* ownersOfRows(tables: Pick<Tables, 'find'>): AsyncGenerator<number, void> {
  for await (const { account_id: id } of everyKey(tables)) yield id;
  const members = paged<MemberRow>((after) =>
    tables.find(MEMBERS, { index: 'by_account', after, limit: ROWS_A_READ }),
  );
  for await (const { account_id: id } of members) yield id;
}

/** Adds what belongs to the accounts of these rows, which the selection names. */
async function withRows(
  rows: readonly AccountRow[],
  selection: OfAccounts,
  tables: RowReads,
): Promise<StoredAccount[]> {
  if (rows.length === 0) return [];
  const others = await belonging(tables, selection);
  return rows.map((row) => {
    const { keys, members } = others(row.id);
    return storedAccount(row, keys, members);
  });
}

type OfAccounts =
  | { readonly equals: { readonly account_id: readonly number[] } }
  | { readonly range: { readonly from?: number | undefined; readonly to?: number | undefined } };

/** Reads the keys and members of the accounts that are selected. */
async function belonging(tables: Pick<Tables, 'find'>, selection: OfAccounts) {
  const query = { index: 'by_account', ...selection, limit: ROWS_A_READ } as const;
  const keys = await Array.fromAsync(paged<KeyRow>((after) => tables.find(KEYS, { ...query, after })));
  const members = await Array.fromAsync(
    paged<MemberRow>((after) => tables.find(MEMBERS, { ...query, after })),
  );
  const keysOf = Map.groupBy(keys, ({ account_id: id }) => id);
  const membersOf = Map.groupBy(members, ({ account_id: id }) => id);
  return (id: number) => ({ keys: keysOf.get(id) ?? [], members: membersOf.get(id) ?? [] });
}

function ascending(a: number, b: number): number {
  return a - b;
}

function summaryOf({ details, unreadable, unreadable_at, ...row }: AccountRow): AccountSummary {
  const fault = unreadable === null ? null : { position: unreadable_at ?? 0, reason: unreadable };
  const { id, name, revision } = row;
  return {
    id,
    name,
    revision,
    details: details === null ? undefined : detailsIn(details),
    unreadable: fault,
  };
}

/** Puts an account together from its rows. */
export function storedAccount(
  row: AccountRow,
  keyRows: readonly KeyRow[],
  memberRows: readonly MemberRow[],
): StoredAccount {
  const keys = new Map(keyRows.map((row) => [row.prefix, keyIn(row)]));
  const groups = new Map<number, { readonly name: string }>();
  const corporates = new Map<number, { readonly name: string; readonly groupId: number | null }>();
  for (const { kind, number, name: named, group_id: groupId } of memberRows)
    if (kind === 'group') groups.set(number, { name: named });
    else corporates.set(number, { name: named, groupId });
  const { revision, position } = row;
  const { id, name, details, unreadable } = summaryOf(row);
  const account = details && { id, name: name ?? '', ...details, groups, corporates, keys };
  return { id, revision, position, account, keys, unreadable };
}
