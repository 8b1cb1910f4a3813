import type { Account } from '../../domain/account.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { readProgress } from './progress.ts';
import { keyIn } from './rows-of.ts';
import type { RowReads } from './stored-account.ts';
import { ACCOUNTS, KEYS } from './tables.ts';

/** The most keys that are read at once. An account has a few. */
const MAX_KEYS = 5_000;

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
