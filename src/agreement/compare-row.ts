import {
  type RowState,
  stateAfter,
  type TransactionRow,
  transition,
} from '../../projections/transactions.ts';
import type { ViewChange } from '../transactions/project-event.ts';

/** Not shown, though the events call for it; shown, though they do not; or shown with other content. */
export type DifferenceKind = 'missing' | 'surplus' | 'differing';

/** How the view differs from the row that the events call for; `undefined` where it does not. */
export function differenceOf(
  expected: TransactionRow | undefined,
  found: TransactionRow | 'hidden' | undefined,
): DifferenceKind | undefined {
  const shown = found === 'hidden' ? undefined : found;
  if (expected === undefined) return shown === undefined ? undefined : 'surplus';
  if (shown === undefined) return 'missing';
  return isSameRow(expected, shown) ? undefined : 'differing';
}

/** The row that a transaction's events fold to. An event that can't follow changes nothing: the view parks it. */
export function rowOf(changes: readonly ViewChange[]): TransactionRow | undefined {
  let state: RowState | undefined;
  let row: TransactionRow | undefined;
  for (const projected of changes) {
    if ('parkReason' in projected || transition(state, projected.change) !== 'apply') continue;
    const { change } = projected;
    row = change.kind === 'show' ? change.row : undefined;
    state = stateAfter(change);
  }
  return row;
}

/** Member by member, the short ones first: of millions of rows a loop over their names takes the most time. */
function isSameRow(one: TransactionRow, other: TransactionRow): boolean {
  return (
    one.id === other.id &&
    one.accountId === other.accountId &&
    one.status === other.status &&
    one.createdAtMs === other.createdAtMs &&
    one.corporateId === other.corporateId &&
    one.corporateGroupId === other.corporateGroupId &&
    one.mobileNumber === other.mobileNumber &&
    one.pump === other.pump &&
    one.odometer === other.odometer &&
    one.fees === other.fees &&
    one.head === other.head
  );
}
