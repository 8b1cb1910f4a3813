import type { SQLInputValue } from 'node:sqlite';
import type { DeliveryFilter, DeliveryState } from '../delivery-queue.ts';

/** The `FROM` and `WHERE` of a look through the log, and its values. */
export interface Selection {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

/** A partial index is used only where its own condition is repeated. */
const RARE_STATES: readonly DeliveryState[] = ['failed', 'held', 'withdrawn'];
const IS_RARE = `state IN (${RARE_STATES.map((state) => `'${state}'`).join(', ')})`;

/** Selects a filter's deliveries by the index that leaves the least to read. */
export function selectionOf(filter: DeliveryFilter): Selection {
  const index = indexOf(filter);
  const conditions: string[] = ['TRUE'];
  const values: SQLInputValue[] = [];
  if (index === 'by_state') conditions.push(IS_RARE);
  if (index === 'due_in_lane') conditions.push('due_at IS NOT NULL');
  const where = (condition: string, value: SQLInputValue | undefined): void => {
    if (value === undefined) return;
    conditions.push(condition);
    values.push(value);
  };
  where('transaction_id = ?', filter.transactionId);
  where('state = ?', filter.state);
  where('prefix = ?', filter.prefix);
  where('account_id = ?', filter.accountId);
  where('created_at >= ?', filter.sinceMs);
  where('created_at <= ?', filter.untilMs);
  return { sql: `FROM deliveries INDEXED BY ${index} WHERE ${conditions.join(' AND ')}`, values };
}

function indexOf(filter: DeliveryFilter): string {
  if (filter.transactionId !== undefined) return 'by_transaction';
  if (filter.state !== undefined && RARE_STATES.includes(filter.state)) return 'by_state';
  if (filter.state === 'pending') return 'due_in_lane'; // what waits is sorted, what has ended is not read
  if (filter.prefix !== undefined) return 'by_lane';
  return filter.accountId === undefined ? 'by_time' : 'by_account';
}
