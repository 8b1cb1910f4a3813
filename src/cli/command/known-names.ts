import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import type { Engines } from '../../app.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { FuelError } from '../../errors.ts';
import { unknownKey } from './find-key.ts';

/**
 * Throws `REFUSED` for an account, a key or a transaction that was never recorded: a list of what belongs to it would
 * be empty, and look like an answer.
 */
export async function requireKnown(
  engines: Pick<Engines, 'store' | 'snapshots'>,
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
