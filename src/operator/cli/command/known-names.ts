import { randomUUID } from 'node:crypto';
import { catchUpAccounts } from '../../../accounts/rows/catch-up.ts';
import { readKeys, type StoredKey } from '../../../accounts/rows/read-rows.ts';
import { readSummary } from '../../../accounts/rows/stored-account.ts';
import { FuelError } from '../../../base/errors.ts';
import { silentLog } from '../../../base/log.ts';
import type { Account, AccountKey } from '../../../domain/account.ts';
import type { Tables } from '../../../tables/tables.ts';
import type { AccountOf } from '../../answers/delivery.ts';
import { type Names, readPrefix, unknownAccount, unknownKey, unknownName } from '../../answers/names.ts';
import type { Session } from './command.ts';

type Reading = Pick<Session, 'engines' | 'clock' | 'out'>;

/** Returns the rows of accounts once they have every event that is in the log now. */
export async function currentAccounts({ engines, clock, out }: Reading): Promise<Tables> {
  const tables = engines.accounts();
  await catchUpAccounts({
    store: engines.store(),
    tables,
    coordination: engines.coordination(),
    clock,
    log: silentLog,
    holder: `command-${randomUUID()}`,
    onProgress: (text) => out.progress(text),
  });
  return tables;
}

/** The key with this prefix as it is now. Throws `REFUSED` if there is none, and `USAGE` for what can't be a prefix. */
export async function findKey(session: Reading, prefix: string): Promise<StoredKey> {
  readPrefix(prefix);
  return requireKey(await currentAccounts(session), prefix);
}

/**
 * The key with this prefix, which may be as it was a moment ago, for a command that decides on the events of its account.
 * The account of a key never changes. Throws as `findKey`.
 */
export async function knownKey(session: Reading, prefix: string): Promise<StoredKey> {
  readPrefix(prefix);
  const known = (await readKeys(session.engines.accounts(), [prefix])).get(prefix);
  return known ?? findKey(session, prefix);
}

async function requireKey(tables: Pick<Tables, 'get'>, prefix: string): Promise<StoredKey> {
  const found = (await readKeys(tables, [prefix])).get(prefix);
  if (found === undefined) throw new FuelError('REFUSED', unknownKey(prefix));
  return found;
}

/** A key that the account is known to have. */
export function keyOf(account: Account, prefix: string): AccountKey {
  const key = account.keys.get(prefix);
  if (key === undefined) throw new Error(`account ${account.id} lost its key ${prefix}`);
  return key;
}

/** Throws `REFUSED` for a transaction that was never recorded, and for an account or a key that the rows of accounts lack. */
export async function requireKnown(session: Reading, { key, ...names }: Names): Promise<void> {
  if (key !== undefined) readPrefix(key);
  const fault = await unknownName({ ...names, key }, session.engines.store(), await currentAccounts(session));
  if (fault !== undefined) throw new FuelError('REFUSED', fault);
}

/** Throws `REFUSED` for an account that was never opened. */
export async function requireAccount(tables: Pick<Tables, 'get'>, accountId: number): Promise<void> {
  if ((await readSummary(tables, accountId)) === undefined)
    throw new FuelError('REFUSED', unknownAccount(accountId));
}

/** Reads accounts from their rows as they are now. */
export function accountOf(session: Reading): AccountOf {
  let tables: Promise<Tables> | undefined;
  return async (accountId) => {
    tables ??= currentAccounts(session);
    return readSummary(await tables, accountId);
  };
}
