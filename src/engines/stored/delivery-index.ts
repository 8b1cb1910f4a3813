import type { DeliveryState } from '../../push/queue/delivery.ts';
import type { DeliveryFilter } from '../../push/queue/delivery-reads.ts';

/** What each index holds besides the time, by which it is ordered. Every engine has them under these names. */
const INDEXED = {
  by_transaction: ['transaction_id'],
  by_state: ['state', 'prefix', 'account_id'],
  by_lane: ['prefix'],
  by_account: ['account_id'],
  by_time: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** On a stored field. */
export interface Condition {
  readonly field: string;
  readonly is: '=' | '>=' | '<=';
  readonly value: string | number;
}

export interface Selection {
  readonly index: keyof typeof INDEXED;
  /** Those that the index decides. */
  readonly inIndex: readonly Condition[];
  readonly others: readonly Condition[];
}

/** Selects a filter's deliveries by the index that leaves the least to read and needs no sorting. */
export function selectionOf(filter: DeliveryFilter, statesOfIndex: readonly DeliveryState[]): Selection {
  const { transactionId, state, prefix, accountId, sinceMs, untilMs } = filter;
  const index = indexOf(filter, statesOfIndex);
  const conditions = [
    { field: 'transaction_id', is: '=', value: transactionId },
    { field: 'state', is: '=', value: state },
    { field: 'prefix', is: '=', value: prefix },
    { field: 'account_id', is: '=', value: accountId },
    { field: 'created_at', is: '>=', value: sinceMs },
    { field: 'created_at', is: '<=', value: untilMs },
  ].filter(({ value }) => value !== undefined) as Condition[];
  const fields: readonly string[] = [...INDEXED[index], 'created_at'];
  const { inIndex = [], others = [] } = Object.groupBy(conditions, ({ field }) =>
    fields.includes(field) ? 'inIndex' : 'others',
  );
  return { index, inIndex, others };
}

function indexOf(
  { transactionId, state, prefix, accountId }: DeliveryFilter,
  statesOfIndex: readonly DeliveryState[],
): Selection['index'] {
  if (transactionId !== undefined) return 'by_transaction';
  if (state !== undefined && statesOfIndex.includes(state)) return 'by_state';
  if (prefix !== undefined) return 'by_lane';
  return accountId === undefined ? 'by_time' : 'by_account';
}
