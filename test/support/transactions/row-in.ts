import type { TransactionRow } from '../../../projections/transactions.ts';
import type { ViewReads } from '../../../src/pull/view/transactions-view.ts';

/** What a view has of one transaction; `undefined` where it does not know it. */
export async function rowIn(
  view: Pick<ViewReads, 'find'>,
  id: number,
  generation?: number,
): Promise<TransactionRow | 'hidden' | undefined> {
  const found = (await view.find([id], generation)).get(id);
  return found && (found.shown ?? 'hidden');
}
