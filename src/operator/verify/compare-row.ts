import type { TransactionRow } from '../../../projections/transactions.ts';
import type { ViewChange } from '../../pull/record/project-event.ts';
import { RowFold } from '../../pull/record/row-fold.ts';
import type { StoredRow } from '../../pull/view/bulk-reads.ts';
import { type DifferenceKind, differenceOf } from '../../pull/view/compare-rows.ts';

/** What a transaction's events fold to. */
export interface FoldedRow {
  readonly revision: number;
  /** `undefined` for a tombstone. */
  readonly row: TransactionRow | undefined;
}

/** How the view differs from what the events call for, also where it shows the same as of another event than the last. */
export function differenceFromEvents(
  expected: FoldedRow | undefined,
  found: StoredRow | undefined,
): DifferenceKind | undefined {
  const shown = found === undefined || found.row === 'hidden' ? undefined : found.row;
  const kind = differenceOf(expected?.row, shown);
  if (kind !== undefined || expected === undefined || found === undefined) return kind;
  return expected.revision === found.revision ? undefined : 'differing';
}

/** Folds a transaction's events; `undefined` where none of them can be applied. */
export function foldRow(changes: readonly ViewChange[]): FoldedRow | undefined {
  const fold = new RowFold();
  for (const change of changes) fold.apply(change);
  return fold.revision === undefined ? undefined : { revision: fold.revision, row: fold.row };
}
