import type { DirectoryKey } from '../../projections/directory.ts';
import { loadDirectory } from '../access/load-directory.ts';
import type { Engines } from '../app.ts';
import type { Account, AccountKey } from '../domain/account.ts';
import { FuelError } from '../errors.ts';

/** The key with this prefix as the directory has it now. Throws `REFUSED` where there is none. */
export async function findKey(
  engines: Pick<Engines, 'store' | 'snapshots'>,
  prefix: string,
): Promise<DirectoryKey> {
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
