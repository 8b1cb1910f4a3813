import type { Directory, DirectoryKey } from '../../../accounts/directory/fold/directory.ts';
import type { DirectoryAccount } from '../../../accounts/directory/fold/directory-entry.ts';
import { loadAccount, loadKey } from '../../../accounts/directory/load-directory.ts';
import { FuelError } from '../../../base/errors.ts';
import type { Account, AccountKey } from '../../../domain/account.ts';
import { VISIBLE_STATUSES } from '../../../domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../../domain/values/date-time.ts';
import { isComplete } from '../../../pull/view/checkpoint.ts';
import type { PageQuery } from '../../../pull/view/transactions-view.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import { type Names, readPrefix, unknownAccount, unknownKey, unknownName } from '../../answers/names.ts';
import { audit } from '../../audit/audit.ts';

type DirectoryEngines = Pick<Engines, 'store' | 'directory'>;
type NamingEngines = DirectoryEngines & Pick<Engines, 'view'>;

/** The key with this prefix. Throws `REFUSED` if there is none, and `USAGE` for what can't be a prefix. */
export async function findKey(engines: DirectoryEngines, prefix: string): Promise<DirectoryKey> {
  readPrefix(prefix);
  const found = await loadKey(engines.store(), engines.directory(), prefix);
  if (found === undefined) throw new FuelError('REFUSED', unknownKey(prefix));
  return found;
}

/**
 * The account, or `undefined` if it was never opened but customers are shown transactions of it. Throws `REFUSED` for any other
 * account.
 */
export async function findAccount(
  engines: Pick<Engines, 'store' | 'view'>,
  accountId: number,
): Promise<DirectoryAccount | undefined> {
  const entry = await loadAccount(engines.store(), accountId);
  if (entry === undefined && !(await isShown(engines, { accountId })))
    throw new FuelError('REFUSED', unknownAccount(accountId));
  return entry;
}

/** All accounts, sorted by id. */
export function sortedAccounts(directory: Directory): DirectoryAccount[] {
  return [...directory.accounts()].sort((a, b) => a.id - b.id);
}

/** A key that the account is known to have. */
export function keyOf(account: Account, prefix: string): AccountKey {
  const key = account.keys.get(prefix);
  if (key === undefined) throw new Error(`account ${account.id} lost its key ${prefix}`);
  return key;
}

/**
 * Throws `REFUSED` for a name that was never recorded. An account that was never opened is known if the view shows
 * transactions of it; with `inLog` also if any event names it, which takes as long as reading the log, or until the signal
 * aborts: then it rejects with an `AbortError`.
 */
export async function requireKnown(
  engines: NamingEngines,
  { key, ...names }: Names,
  { inLog }: { readonly inLog?: AbortSignal } = {},
): Promise<void> {
  if (key !== undefined) readPrefix(key);
  const store = engines.store();
  const fault = await unknownName(
    { ...names, key },
    {
      store,
      accountOf: accountOf({ engines }),
      ownerOf: async (prefix) => (await loadKey(store, engines.directory(), prefix))?.entry.id,
      isNamed: (accountId) =>
        inLog ? isNamedInLog(engines, accountId, inLog) : isShown(engines, { accountId }),
    },
  );
  if (fault !== undefined) throw new FuelError('REFUSED', fault);
}

/** Reads an account from its stream. */
export function accountOf({ engines }: { readonly engines: Pick<Engines, 'store'> }) {
  return (accountId: number) => loadAccount(engines.store(), accountId);
}

/** True if the view shows a transaction of the account, or of the corporates that are named. */
export async function isShown(
  { view }: Pick<Engines, 'view'>,
  of: Pick<PageQuery, 'accountId' | 'references'>,
): Promise<boolean> {
  const checkpoint = await view().checkpoint();
  if (checkpoint === undefined || !isComplete(checkpoint)) return false;
  const all = { fromMs: EARLIEST_MS, toMs: LATEST_MS, statuses: VISIBLE_STATUSES, limit: 1 };
  return (await view().page({ ...of, ...all })).rows.length > 0;
}

async function isNamedInLog(
  { store }: Pick<Engines, 'store'>,
  accountId: number,
  signal: AbortSignal,
): Promise<boolean> {
  for await (const _ of audit(store(), { accountId }, { follow: false, signal })) return true;
  signal.throwIfAborted();
  return false;
}
