import type { Directory, DirectoryAccount, DirectoryKey } from '../../../projections/directory.ts';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import type { Engines } from '../../app.ts';
import type { Account, AccountKey } from '../../domain/account.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { FuelError } from '../../errors.ts';

const PREFIX = /^[a-z0-9]{10}$/;

type DirectoryEngines = Pick<Engines, 'store' | 'snapshots'>;

/** The key with this prefix in the present directory. Throws `REFUSED` if there is none, and as `requirePrefix`. */
export async function findKey(engines: DirectoryEngines, prefix: string): Promise<DirectoryKey> {
  requirePrefix(prefix);
  const found = (await loadDirectory(engines.store(), engines.snapshots())).key(prefix);
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

/**
 * Throws `REFUSED` for an account, a key or a transaction that was never recorded: an empty list would look like an
 * answer.
 */
export async function requireKnown(
  engines: DirectoryEngines,
  names: { readonly account?: number; readonly key?: string; readonly transaction?: number },
): Promise<void> {
  const { account, key, transaction } = names;
  if (account !== undefined || key !== undefined) {
    const directory = await loadDirectory(engines.store(), engines.snapshots());
    if (account !== undefined && directory.account(account) === undefined) throw unknownAccount(account);
    if (key !== undefined && directory.key(key) === undefined) throw unknownKey(key);
  }
  if (transaction === undefined) return;
  const stream = transactionStream(transaction);
  const [first] = await engines.store().readStream(stream);
  if (first === undefined && !(await engines.store().isErased(stream))) {
    throw new FuelError('REFUSED', `transaction ${transaction} is not known`);
  }
}

export function unknownAccount(account: number): FuelError {
  return new FuelError('REFUSED', `account ${account} is not known: fuel account list`);
}

function unknownKey(prefix: string): FuelError {
  return new FuelError('REFUSED', `no key has the prefix ${prefix}: fuel key list shows them all`);
}
