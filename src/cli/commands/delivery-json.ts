import type { Attempt, DeliverySummary } from '../../deliveries/queue/delivery-queue.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { printableLine } from '../../printable.ts';
import { outcomeJson, outcomeText } from '../command/outcome-json.ts';

/** A delivery as lists show it. */
export function deliveryJson(delivery: DeliverySummary) {
  return {
    id: delivery.id,
    state: delivery.state,
    key: delivery.prefix,
    account: delivery.accountId,
    transaction_id: delivery.transactionId,
    type: delivery.type,
    created_at: formatDateTime(delivery.createdAtMs),
    reason: delivery.reason,
    due_at: delivery.dueAtMs === null ? null : formatDateTime(delivery.dueAtMs),
  };
}

export function deliveryText(delivery: DeliverySummary): string {
  const { id, state, key, transaction_id, type, created_at, reason } = deliveryJson(delivery);
  const why = reason === null ? '' : `  (${printableLine(reason)})`;
  return `${created_at}  ${id}  ${state}${why}  key ${key}  ${type} ${transaction_id}`;
}

export function attemptJson(attempt: Attempt) {
  return {
    cycle: attempt.cycle,
    number: attempt.number,
    at: formatDateTime(attempt.startedAtMs),
    duration_ms: Math.round(attempt.durationMs),
    ...outcomeJson(attempt.outcome),
  };
}

export function attemptText(attempt: Attempt): string {
  const { cycle, number, at, duration_ms } = attemptJson(attempt);
  const name = cycle === 1 ? `attempt ${number}` : `redelivery ${cycle - 1}, attempt ${number}`;
  return `${at}  ${name}, ${duration_ms} ms: ${outcomeText(attempt.outcome)}`;
}
