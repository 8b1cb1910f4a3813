import type { Account } from '../../domain/account.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { Tables } from '../../tables/tables.ts';
import type { AccessRows, KnownKey } from '../caller.ts';
import { accessIn, keyIn } from './rows-of.ts';
import {
  ACCOUNTS,
  KEYS,
  MEMBERS,
  type MemberKind,
  memberId,
  PROGRESS,
  PROGRESS_NAME,
  type ProgressRow,
} from './tables.ts';

/** The most keys that are read at once for the past of accounts. An account has a few. */
const MAX_KEYS = 5_000;

export type RowReads = Pick<Tables, 'get' | 'find'>;

/** A key as its row has it, with everything that a request and an attempt need. */
export interface StoredKey extends KnownKey {
  /** The last event that ended the key's deliveries. */
  readonly ended: { readonly position: Position; readonly reason: string } | undefined;
  /** The time at which its webhook was enabled last. */
  readonly enabledAtMs: number | undefined;
}

/** Reads what a request needs: the row of its key, and the rows of the corporates and groups that it names. */
export function accessRows(tables: Pick<Tables, 'get'>): AccessRows {
  return {
    async key(prefix) {
      const [row] = await tables.get(KEYS, [prefix], ['account_id', 'settings', 'access', 'unreadable']);
      if (row === undefined) return undefined;
      const { account_id: accountId, unreadable, access } = row;
      return { accountId, unreadable, key: keyIn(row), access: accessIn(access) };
    },
    async members(accountId, { groups, corporates }) {
      const named = [
        ...groups.map((number) => memberId(accountId, 'group', number)),
        ...corporates.map((number) => memberId(accountId, 'corporate', number)),
      ];
      const rows = await tables.get(MEMBERS, named, ['kind', 'number', 'group_id']);
      const ofKind = (kind: MemberKind) => rows.filter((row) => row.kind === kind);
      return {
        groups: new Set(ofKind('group').map(({ number }) => number)),
        corporates: new Map(ofKind('corporate').map(({ number, group_id }) => [number, group_id])),
      };
    },
  };
}

/** Reads keys by their prefixes. Those that are not known are left out. */
export async function readKeys(
  tables: Pick<Tables, 'get'>,
  prefixes: readonly string[],
): Promise<Map<string, StoredKey>> {
  const rows = await tables.get(KEYS, prefixes);
  return new Map(
    rows.map((row) => {
      const { account_id: accountId, unreadable, ended_at, ended_reason, enabled_at } = row;
      const ended = ended_at === null ? undefined : { position: ended_at, reason: ended_reason ?? '' };
      const facts = { key: keyIn(row), access: accessIn(row.access), enabledAtMs: enabled_at ?? undefined };
      return [row.prefix, { accountId, unreadable, ended, ...facts }];
    }),
  );
}

/** Reads how far the rows are; `undefined` if there are none yet. */
export async function readProgress(tables: Pick<Tables, 'get'>): Promise<ProgressRow | undefined> {
  const [progress] = await tables.get(PROGRESS, [PROGRESS_NAME]);
  return progress;
}

/** The keys of an account at a position; `account` is `undefined` if it was not open by then. */
interface AtPosition {
  readonly account: Pick<Account, 'keys'> | undefined;
}

/** Returns how an account was before a position; `undefined` if its rows don't say that. */
export type ReachedRows = (place: {
  readonly accountId: number;
  readonly position: Position;
}) => AtPosition | undefined;

/**
 * Reads the rows of some accounts. They say how an account was before a position if all that was recorded before it has been
 * applied, and nothing later has changed the account.
 */
export async function readReached(tables: RowReads, accountIds: readonly number[]): Promise<ReachedRows> {
  // The progress is read first and written last, so the rows have at least everything up to it.
  const reached = (await readProgress(tables))?.reached ?? 0;
  const accounts = await tables.get(ACCOUNTS, accountIds, ['id', 'position', 'unreadable']);
  const keys = await tables.find(KEYS, {
    index: 'by_account',
    equals: { account_id: accountIds },
    limit: MAX_KEYS,
    columns: ['account_id', 'prefix', 'position', 'settings'],
  });
  if (keys.length === MAX_KEYS) return () => undefined;
  const asked = new Set(accountIds);
  const accountOf = new Map(accounts.map((row) => [row.id, row]));
  const keysOf = Map.groupBy(keys, ({ account_id: id }) => id);
  return ({ accountId, position }) => {
    if (reached < position || !asked.has(accountId)) return undefined;
    const row = accountOf.get(accountId);
    if (row === undefined) return { account: undefined };
    const own = keysOf.get(accountId) ?? [];
    // A row that is written between these reads has a later position.
    const isCurrent = row.unreadable === null && [row, ...own].every((each) => each.position < position);
    return isCurrent ? { account: { keys: new Map(own.map((key) => [key.prefix, keyIn(key)])) } } : undefined;
  };
}
