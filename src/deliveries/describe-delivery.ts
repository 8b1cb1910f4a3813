import { heldReason } from '../accounts/account-state.ts';
import type { Account } from '../domain/account.ts';
import { formatDateTime } from '../domain/values/date-time.ts';
import { printableLine } from '../printable.ts';
import type { Attempt, AttemptOutcome, DeliverySummary } from './queue/delivery-queue.ts';

/** With the reason of one that is held, by its account as it is now. */
export function withHeldReason<T extends DeliverySummary>(
  delivery: T,
  accountOf: (accountId: number) => Account | undefined,
  nowMs: number,
): T {
  if (delivery.state !== 'held') return delivery;
  return { ...delivery, reason: heldReason(accountOf(delivery.accountId), nowMs) };
}

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
  const { id, state, key, transaction_id, type, created_at, reason, due_at } = deliveryJson(delivery);
  const why = reason === null ? '' : `  (${printableLine(reason)})`;
  const due = due_at === null ? '' : `  next attempt ${due_at}`;
  return `${created_at}  ${id}  ${state}${why}  key ${key}  ${type} ${transaction_id}${due}`;
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

/** What a receiver answered, or why it did not, as `delivery show` and `webhook test` print it. */
export function outcomeJson(outcome: AttemptOutcome) {
  const { answer } = outcome;
  return {
    ok: outcome.ok,
    status: answer?.status ?? null,
    headers: answer?.headers ?? null,
    body: answer?.body ?? null,
    error: outcome.ok ? null : { kind: outcome.kind, detail: outcome.detail },
  };
}

export function outcomeText(outcome: AttemptOutcome): string {
  const status = outcome.answer === null ? '' : `answered ${outcome.answer.status}`;
  const error =
    outcome.ok || outcome.kind === 'status' ? '' : `${outcome.kind}: ${printableLine(outcome.detail)}`;
  const body = outcome.answer?.body ? `\n  ${printableLine(outcome.answer.body)}` : '';
  return `${[status, error].filter((part) => part !== '').join(', ')}${body}`;
}
