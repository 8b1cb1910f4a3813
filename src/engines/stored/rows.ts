import { VISIBLE_STATUSES, type VisibleStatus } from '../../../projections/transactions.ts';
import type { PageQuery } from '../../pull/view/transactions-view.ts';

/** As every view stores them: a code never changes its meaning. */
const STATUS_CODES: Readonly<Record<VisibleStatus, number>> = { CONFIRMED: 1, EXTERNAL: 2 };

export function statusCode(status: VisibleStatus): number {
  return STATUS_CODES[status];
}

/** Throws for a code that this version does not know, as of a later one. */
export function statusOf(code: unknown, id: number): VisibleStatus {
  const status = VISIBLE_STATUSES.find((name) => STATUS_CODES[name] === code);
  if (status === undefined) throw new Error(`the row of transaction ${id} has an unknown status: ${code}`);
  return status;
}

/**
 * What a view is searched by: each index fits one combination of filters, equal values first, then the status and the order
 * of the list. Tombstones are in none, records without a group in none of those of groups.
 */
export const ROW_INDEXES = {
  by_account: ['account_id'],
  by_corporate: ['account_id', 'corporate_id'],
  by_group: ['account_id', 'corporate_group_id'],
  by_group_and_corporate: ['account_id', 'corporate_group_id', 'corporate_id'],
} as const;

export type RowIndexName = keyof typeof ROW_INDEXES;

export function indexFor({
  corporateGroupId,
  corporateIds,
}: Pick<PageQuery, 'corporateGroupId' | 'corporateIds'>): RowIndexName {
  if (corporateGroupId === undefined) return corporateIds === undefined ? 'by_account' : 'by_corporate';
  return corporateIds === undefined ? 'by_group' : 'by_group_and_corporate';
}
