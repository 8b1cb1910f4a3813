import type { TransactionRow } from '../../../projections/transactions.ts';

/** Member by member, the short ones first: of millions of rows a loop over their names takes the most time. */
export function sameRow(one: TransactionRow, other: TransactionRow): boolean {
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
