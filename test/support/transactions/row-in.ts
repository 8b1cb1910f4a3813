import type { TransactionRow } from '../../../projections/transactions.ts';
import type { ViewReads } from '../../../src/pull/view/transactions-view.ts';

/** Returns a view's row of one transaction; `undefined` if the view does not know it. */
export async function rowIn(
  view: Pick<ViewReads, 'find'>,
  id: number,
  generation?: number,
): Promise<TransactionRow | 'hidden' | undefined> {
  const found = (await view.find([id], generation)).get(id);
  return found && (found.shown ?? 'hidden');
}
