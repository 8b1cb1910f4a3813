import type { TransactionRow } from '../../../projections/transactions.ts';

/** A row, or the tombstone of one. */
export interface StoredRow {
  /** Of the last event that was applied to it. */
  readonly revision: number;
  readonly row: TransactionRow | 'hidden';
}

/**
 * Reads of many rows, for those who compare the whole view with something else. They also read a view that is not
 * complete yet; every call is one short query, found by the ids, and after `close` it rejects with `STORE_CLOSED`.
 *
 * - `findMany`: as `find` of each of the ids, by id; those that the view does not know are left out.
 * - `rowsAfter`: the visible rows with an id above `afterId`, in ascending order of ids, at most `limit`. The last
 *   ones are those of a shorter answer.
 * - `idsAfter`: the ids of the same rows.
 */
export interface BulkReads {
  findMany(transactionIds: readonly number[]): Promise<ReadonlyMap<number, StoredRow>>;
  rowsAfter(afterId: number, limit: number): Promise<TransactionRow[]>;
  idsAfter(afterId: number, limit: number): Promise<number[]>;
}

/** What is compared of two generations of the view. */
export interface ViewRows extends Pick<BulkReads, 'rowsAfter'> {
  find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined>;
}
