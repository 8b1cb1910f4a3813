import type { DirectoryKey } from '../../../projections/directory.ts';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import type { Engines } from '../../app.ts';
import type { Account, AccountKey } from '../../domain/account.ts';
import { FuelError } from '../../errors.ts';

const PREFIX = /^[a-z0-9]{10}$/;

/** The key with this prefix as the directory has it now. Throws `REFUSED` where there is none, and as `requirePrefix`. */
export async function findKey(
  engines: Pick<Engines, 'store' | 'snapshots'>,
  prefix: string,
): Promise<DirectoryKey> {
  requirePrefix(prefix);
  const found = (await loadDirectory(engines.store(), engines.snapshots())).key(prefix);
  if (found === undefined) throw unknownKey(prefix);
  return found;
}

/** The key of an account that has it. */
export function keyOf(account: Account, prefix: string): AccountKey {
  const key = account.keys.get(prefix);
  if (key === undefined) throw new Error(`account ${account.id} lost its key ${prefix}`);
  return key;
}

export function unknownKey(prefix: string): FuelError {
  return new FuelError('REFUSED', `no key has the prefix ${prefix}: fuel key list shows them all`);
}

/**
 * Throws `USAGE` for what can't be a prefix, without a word of what was given: it may be a whole key, or its secret,
 * and messages end up in logs and on others' screens.
 */
export function requirePrefix(text: string): void {
  if (PREFIX.test(text)) return;
  throw new FuelError(
    'USAGE',
    'a prefix is wanted, not a whole key: the 10 characters of [a-z0-9] between svc_live_ or svc_test_ and the next _, ' +
      'such as a1b2c3d4e5; fuel key list shows them all',
  );
}
