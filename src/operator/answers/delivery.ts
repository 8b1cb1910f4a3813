import type { AccountSummary } from '../../accounts/rows/stored-account.ts';
import { dateTimeOrNull, formatDateTime } from '../../domain/values/date-time.ts';
import type { Shown } from '../../push/held.ts';
import type { Attempt, AttemptOutcome, DeliverySummary } from '../../push/queue/delivery.ts';
import { noAccess } from './access.ts';

/** Reads the row of an account; `undefined` if it was never opened. */
export type AccountOf = (accountId: number) => Promise<AccountSummary | undefined>;

/** Shows the pending deliveries of accounts that have no access now as held, with the reason. */
export async function withHeldReasons<T extends DeliverySummary>(
  deliveries: readonly T[],
  accountOf: AccountOf,
  nowMs: number,
): Promise<Shown<T>[]> {
  const reasons = new Map<number, string | undefined>();
  for (const { state, accountId } of deliveries) {
    if (state !== 'pending' || reasons.has(accountId)) continue;
    reasons.set(accountId, noAccess((await accountOf(accountId))?.details, nowMs)?.reason);
  }
  return deliveries.map((delivery) => {
    const reason = delivery.state === 'pending' ? reasons.get(delivery.accountId) : undefined;
    return reason === undefined ? delivery : { ...delivery, state: 'held', reason, dueAtMs: null };
  });
}

/** A delivery in a list. */
export function deliveryAnswer(delivery: Shown) {
  return {
    id: delivery.id,
    state: delivery.state,
    key: delivery.prefix,
    account: delivery.accountId,
    transaction_id: delivery.transactionId,
    type: delivery.type,
    created_at: formatDateTime(delivery.createdAtMs),
    reason: delivery.reason,
    due_at: dateTimeOrNull(delivery.dueAtMs),
  };
}

export function attemptAnswer(attempt: Attempt) {
  return {
    cycle: attempt.cycle,
    number: attempt.number,
    at: formatDateTime(attempt.startedAtMs),
    duration_ms: Math.round(attempt.durationMs),
    others_under_way: attempt.othersUnderWay,
    sent_again: attempt.sentAgain === true,
    ...outcomeAnswer(attempt.outcome),
  };
}

type AttemptAnswer = ReturnType<typeof attemptAnswer>;

/** The answer of a receiver, or why there was none. */
export function outcomeAnswer(outcome: AttemptOutcome) {
  const { answer } = outcome;
  return {
    ok: outcome.ok,
    status: answer?.status ?? null,
    headers: answer?.headers ?? null,
    body: answer?.body ?? null,
    error: outcome.ok ? null : { kind: outcome.kind, detail: outcome.detail },
  };
}

export function attemptName({ cycle, number }: Pick<AttemptAnswer, 'cycle' | 'number'>): string {
  return cycle === 1 ? `attempt ${number}` : `redelivery ${cycle - 1}, attempt ${number}`;
}

/** Returns `answered 503`, or what prevented or cut off the answer. */
export function outcomeText({ status, error }: Pick<AttemptAnswer, 'status' | 'error'>): string {
  const answered = status === null ? [] : [`answered ${status}`];
  const failed = error === null || error.kind === 'status' ? [] : [`${error.kind}: ${error.detail}`];
  return [...answered, ...failed].join(', ');
}
