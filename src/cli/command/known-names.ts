import type { Directory, DirectoryKey } from '../../../projections/directory.ts';
import type { DirectoryAccount } from '../../../projections/directory-entry.ts';
import { VISIBLE_STATUSES } from '../../../projections/transactions.ts';
import { loadAccount, loadKey } from '../../accounts/directory/load-directory.ts';
import type { Engines } from '../../app.ts';
import { audit } from '../../audit/audit.ts';
import type { Account, AccountKey } from '../../domain/account.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../domain/values/date-time.ts';
import { FuelError } from '../../errors.ts';
import { isComplete } from '../../transactions/view/checkpoint.ts';
import type { PageQuery } from '../../transactions/view/transactions-view.ts';

const PREFIX = /^[a-z0-9]{10}$/;

type DirectoryEngines = Pick<Engines, 'store' | 'snapshots'>;
type NamingEngines = DirectoryEngines & Pick<Engines, 'view'>;

/** The key with this prefix in the present directory. Throws `REFUSED` if there is none, and as `requirePrefix`. */
export async function findKey(engines: DirectoryEngines, prefix: string): Promise<DirectoryKey> {
  requirePrefix(prefix);
  const found = await loadKey(engines.store(), engines.snapshots(), prefix);
  if (found === undefined) throw unknownKey(prefix);
  return found;
}

/** Every account by its id. */
export function sortedAccounts(directory: Directory): DirectoryAccount[] {
  return [...directory.accounts()].sort((a, b) => a.id - b.id);
}

/** The key of an account that has it. */
export function keyOf(account: Account, prefix: string): AccountKey {
  const key = account.keys.get(prefix);
  if (key === undefined) throw new Error(`account ${account.id} lost its key ${prefix}`);
  return key;
}

/**
 * Throws `USAGE` for what can't be a prefix, without repeating the text: it may be a whole key or its secret, and
 * messages end up in logs and on other people's screens.
 */
export function requirePrefix(text: string): void {
  if (PREFIX.test(text)) return;
  throw new FuelError(
    'USAGE',
    'a prefix is wanted, not a whole key: the 10 characters of [a-z0-9] between svc_live_ or svc_test_ and the next _, ' +
      'such as a1b2c3d4e5; fuel key list shows them all',
  );
}

interface KnownNames {
  readonly account?: number | undefined;
  readonly key?: string;
  readonly transaction?: number;
}

/**
 * Throws `REFUSED` for an account, a key or a transaction that was never recorded, and for a key of another account than
 * the one that is named too: an empty list would look like an answer. An account that was never opened is known if the
 * view shows transactions of it, or with `inLog` if any event names it, which takes as long as to read the log.
 */
export async function requireKnown(
  engines: NamingEngines,
  names: KnownNames,
  { inLog = false } = {},
): Promise<void> {
  const { account, key, transaction } = names;
  const entry = account === undefined ? undefined : await loadAccount(engines.store(), account);
  if (account !== undefined && entry === undefined) {
    const isNamed = inLog ? isNamedInLog(engines, account) : isShown(engines, { accountId: account });
    if (!(await isNamed)) throw unknownAccount(account);
  }
  if (key !== undefined && !entry?.account?.keys.has(key)) {
    const { id } = (await findKey(engines, key)).entry;
    if (account !== undefined && account !== id) {
      throw new FuelError('REFUSED', `the key ${key} is of account ${id}, not of account ${account}`);
    }
  }
  if (transaction === undefined) return;
  const stream = transactionStream(transaction);
  const [first] = await engines.store().readStream(stream);
  if (first === undefined && !(await engines.store().isErased(stream))) {
    throw new FuelError('REFUSED', `transaction ${transaction} is not known`);
  }
}

/** Whether the view shows any transaction of the account, or of one of these corporates of it. */
export async function isShown(
  { view }: Pick<Engines, 'view'>,
  of: Pick<PageQuery, 'accountId' | 'corporateIds'>,
): Promise<boolean> {
  const checkpoint = await view().checkpoint();
  if (checkpoint === undefined || !isComplete(checkpoint)) return false;
  const all = { fromMs: EARLIEST_MS, toMs: LATEST_MS, statuses: VISIBLE_STATUSES, limit: 1 };
  return (await view().page({ ...of, ...all })).rows.length > 0;
}

async function isNamedInLog({ store }: Pick<Engines, 'store'>, accountId: number): Promise<boolean> {
  const { signal } = new AbortController();
  for await (const _ of audit(store(), { accountId }, { follow: false, signal })) return true;
  return false;
}

export function unknownAccount(account: number): FuelError {
  return new FuelError('REFUSED', `account ${account} is not known: fuel account list`);
}

function unknownKey(prefix: string): FuelError {
  return new FuelError('REFUSED', `no key has the prefix ${prefix}: fuel key list shows them all`);
}
