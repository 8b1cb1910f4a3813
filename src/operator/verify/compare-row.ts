import type { RowState } from '../../../projections/transactions.ts';
import { RowFold, type ViewChange } from '../../pull/record/project-event.ts';
import { type DifferenceKind, differenceOf } from '../../pull/view/build/compare.ts';

/**
 * Returns how a row differs from what its events call for. A row at a later revision than the last event differs too: it
 * would ignore the events that are still to come.
 */
export function differenceFromEvents(
  expected: RowState | undefined,
  found: RowState | undefined,
): DifferenceKind | undefined {
  const kind = differenceOf(expected?.shown, found?.shown);
  if (kind !== undefined || expected === undefined || found === undefined) return kind;
  return found.revision > expected.revision ? 'differing' : undefined;
}

/** Folds a transaction's events into a row; `undefined` if none of them can be applied. */
export function foldRow(changes: readonly ViewChange[]): RowState | undefined {
  const fold = new RowFold();
  for (const change of changes) fold.apply(change);
  return fold.state;
}
