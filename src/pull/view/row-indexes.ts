import type { PageQuery } from './transactions-view.ts';

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
