import type { TransactionRow } from '../../projections/transactions.ts';
import type { ViewChange } from '../transactions/project-event.ts';
import { RowFold } from '../transactions/row-fold.ts';
import type { StoredRow } from '../transactions/view/bulk-reads.ts';
import { sameRow } from '../transactions/view/same-row.ts';

/**
 * Not shown, though the events call for it; shown, though they do not; or shown with other content, or as of another
 * event than its last: a later one would be taken for one that was applied.
 */
export type DifferenceKind = 'missing' | 'surplus' | 'differing';

/** What a transaction's events fold to. */
export interface FoldedRow {
  readonly revision: number;
  /** `undefined` for a tombstone. */
  readonly row: TransactionRow | undefined;
}

/** How the view differs from what the events call for; `undefined` where it does not. */
export function differenceOf(
  expected: FoldedRow | undefined,
  found: StoredRow | undefined,
): DifferenceKind | undefined {
  const shown = found === undefined || found.row === 'hidden' ? undefined : found.row;
  if (expected?.row === undefined) {
    if (shown !== undefined) return 'surplus';
  } else if (shown === undefined) return 'missing';
  else if (!sameRow(expected.row, shown)) return 'differing';
  if (expected === undefined || found === undefined) return undefined;
  return expected.revision === found.revision ? undefined : 'differing';
}

/** Folds a transaction's events; `undefined` where none of them can be applied. */
export function foldRow(changes: readonly ViewChange[]): FoldedRow | undefined {
  const fold = new RowFold();
  for (const change of changes) fold.apply(change);
  return fold.revision === undefined ? undefined : { revision: fold.revision, row: fold.row };
}
