import { REFERENCES, type Reference } from '../../../projections/transactions.ts';
import { VISIBLE_STATUSES, type VisibleStatus } from '../../domain/transaction-events.ts';
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
 * What a view is searched by: each index fits one combination of references, equal values first, then the status and the
 * order of the list. Tombstones are in none, records without a group in none of those of groups.
 */
export const ROW_INDEXES = {
  by_account: ['account_id'],
  by_corporate: ['account_id', 'corporate_id'],
  by_group: ['account_id', 'corporate_group_id'],
  by_group_and_corporate: ['account_id', 'corporate_group_id', 'corporate_id'],
} as const satisfies Readonly<Record<string, readonly ['account_id', ...Reference[]]>>;

export type RowIndexName = keyof typeof ROW_INDEXES;
export const ROW_INDEX_NAMES = Object.keys(ROW_INDEXES) as readonly RowIndexName[];

export function indexFor({ references = {} }: Pick<PageQuery, 'references'>): RowIndexName {
  const equal = ['account_id', ...REFERENCES.filter((name) => references[name] !== undefined)].join();
  const index = ROW_INDEX_NAMES.find((name) => ROW_INDEXES[name].join() === equal);
  if (index === undefined) throw new Error(`the view has no index over ${equal}`);
  return index;
}

/** Which of the index's columns a visible row may lack: the index has only rows that have it. */
export function optionalColumnOf(index: RowIndexName): Reference | undefined {
  const columns: readonly string[] = ROW_INDEXES[index];
  return columns.includes('corporate_group_id') ? 'corporate_group_id' : undefined;
}
