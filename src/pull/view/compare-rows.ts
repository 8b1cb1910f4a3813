import { REFERENCES, type TransactionRow } from '../../../projections/transactions.ts';

/** Not shown, though it should be; shown, though it should not be; or shown with other content. */
export type DifferenceKind = 'missing' | 'surplus' | 'differing';

/** How what a view shows of a transaction differs from what it should; `undefined` where it does not. */
export function differenceOf(
  expected: TransactionRow | null | undefined,
  shown: TransactionRow | null | undefined,
): DifferenceKind | undefined {
  if (!expected) return shown ? 'surplus' : undefined;
  if (!shown) return 'missing';
  return isSame(expected, shown) ? undefined : 'differing';
}

/** Member by member, the short ones first: of millions of rows a loop over their names takes the most time. */
function isSame(one: TransactionRow, other: TransactionRow): boolean {
  return (
    one.id === other.id &&
    one.accountId === other.accountId &&
    one.status === other.status &&
    one.createdAtMs === other.createdAtMs &&
    REFERENCES.every((name) => one.references[name] === other.references[name]) &&
    one.mobileNumber === other.mobileNumber &&
    one.pump === other.pump &&
    one.odometer === other.odometer &&
    one.fees === other.fees &&
    one.head === other.head
  );
}
