import type { AttemptOutcome } from '../../deliveries/queue/delivery-queue.ts';
import { printableLine } from '../../printable.ts';

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
