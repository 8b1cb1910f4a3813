import type { AttemptOutcome } from './delivery-queue.ts';

/** What a receiver answered: its status, or the failure in words: `503`, `timeout: …`. */
export function answerOf(outcome: AttemptOutcome): string {
  return statusOf(outcome) ?? (outcome.ok ? '' : `${outcome.kind}: ${outcome.detail}`);
}

/** In short: its status, or the kind of the failure. */
export function shortAnswer(outcome: AttemptOutcome): string {
  return statusOf(outcome) ?? (outcome.ok ? '' : outcome.kind);
}

function statusOf(outcome: AttemptOutcome): string | undefined {
  const isJudgedByStatus = outcome.ok || outcome.kind === 'status';
  return isJudgedByStatus && outcome.answer !== null ? String(outcome.answer.status) : undefined;
}
