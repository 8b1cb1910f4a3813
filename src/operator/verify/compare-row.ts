import { REFERENCES, type RowState, type TransactionRow } from '../../../projections/transactions.ts';
import { type Projected, TransactionFold } from '../../records/project-event.ts';

/** The view lacks a record, shows one that it should not show, or shows one with other content. */
export type DifferenceKind = 'missing' | 'surplus' | 'differing';

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
export function foldRow(events: readonly Projected[]): RowState | undefined {
  const fold = new TransactionFold();
  for (const event of events) fold.apply(event);
  return fold.row;
}

/** Returns how the shown row differs from the expected one; `undefined` if it does not. */
function differenceOf(
  expected: TransactionRow | null | undefined,
  shown: TransactionRow | null | undefined,
): DifferenceKind | undefined {
  if (!expected) return shown ? 'surplus' : undefined;
  if (!shown) return 'missing';
  return isSame(expected, shown) ? undefined : 'differing';
}

/** Compares each member by name, the short ones first: for millions of rows a loop over the names would take most of the time. */
function isSame(one: TransactionRow, other: TransactionRow): boolean {
  return (
    one.id === other.id &&
    one.accountId === other.accountId &&
    one.status === other.status &&
    one.createdAtMs === other.createdAtMs &&
    REFERENCES.every((name) => one.references[name] === other.references[name]) &&
    one.record === other.record
  );
}
