import { accessText } from '../../../src/accounts/rows/rows-of.ts';
import { storedAccount } from '../../../src/accounts/rows/stored-account.ts';
import {
  ACCOUNTS,
  type AccountRow,
  KEYS,
  type KeyRow,
  MEMBERS,
  type MemberRow,
} from '../../../src/accounts/rows/tables.ts';
import type { Account } from '../../../src/domain/account.ts';
import { sameJson } from '../../../src/domain/values/same-json.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import type { AccountModel } from './account-model.ts';

/** Every row of the accounts' tables. */
export interface AllRows {
  readonly accounts: readonly AccountRow[];
  readonly keys: readonly KeyRow[];
  readonly members: readonly MemberRow[];
}

const ALL = { index: 'key', limit: 100_000 } as const;

export async function allRows(tables: Pick<Tables, 'find'>): Promise<AllRows> {
  const accounts = await tables.find(ACCOUNTS, ALL);
  return { accounts, keys: await tables.find(KEYS, ALL), members: await tables.find(MEMBERS, ALL) };
}

/** Yields what the rows have otherwise than a model that was folded from the same events. */
export function* rowsDiffer(rows: AllRows, directory: AccountModel): Generator<string, void> {
  const ids = new Set(rows.accounts.map(({ id }) => id));
  for (const { id } of directory.accounts()) if (!ids.has(id)) yield `account ${id} has no row`;
  const lost = [...rows.keys, ...rows.members].find(({ account_id }) => !ids.has(account_id));
  if (lost !== undefined) yield `a row belongs to account ${lost.account_id}, which has none`;
  for (const row of rows.accounts) {
    const entry = directory.account(row.id);
    if (entry === undefined) {
      yield `account ${row.id} has a row and no event`;
      continue;
    }
    const keys = rows.keys.filter(({ account_id }) => account_id === row.id);
    const members = rows.members.filter(({ account_id }) => account_id === row.id);
    const stored = storedAccount(row, keys, members);
    const { revision, unreadable } = entry;
    const differs = (what: string, is: unknown, must: unknown) =>
      sameJson(is, must)
        ? []
        : [`${what} of account ${row.id} is ${JSON.stringify(is)}, and not ${JSON.stringify(must)}`];
    yield* differs('the revision', stored.revision, revision);
    yield* differs('the fault', stored.unreadable, unreadable);
    yield* differs('the account', plain(stored.account), plain(entry.account));
    yield* differs('the keys', sorted(stored.keys), sorted(entry.keys));
    for (const key of keys) {
      yield* differs(`the fault at key ${key.prefix}`, key.unreadable, unreadable?.reason ?? null);
      if (entry.account !== undefined)
        yield* differs(`the access at key ${key.prefix}`, key.access, accessText(entry.account));
    }
  }
}

function plain(account: Account | undefined): unknown {
  if (account === undefined) return null;
  const { groups, corporates, profiles, keys, ...rest } = account;
  return {
    ...rest,
    groups: sorted(groups),
    corporates: sorted(corporates),
    profiles: [...profiles],
    keys: sorted(keys),
  };
}

function sorted<K extends string | number, V>(map: ReadonlyMap<K, V> | undefined): unknown {
  return [...(map ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
}
