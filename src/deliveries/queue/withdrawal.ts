import type { RenderedRecord } from '../../../projections/transactions.ts';
import type { Attempt, AttemptOutcome } from './delivery-queue.ts';

/** The reason of a delivery whose transaction is not to be pushed any more. */
export const WITHDRAWN = 'the transaction was voided or cancelled';

/** What is kept of the record of an erased transaction, and of one that is enqueued after its withdrawal. */
export const NO_RECORD: RenderedRecord = {
  head: '',
  mobileNumber: null,
  fees: '',
  pump: null,
  odometer: null,
};

/** The outcome without the words of the receiver, which may repeat the record. */
export function withoutWords(outcome: AttemptOutcome): AttemptOutcome {
  if (outcome.answer === null) return outcome;
  return { ...outcome, answer: { status: outcome.answer.status, headers: {}, body: '' } };
}

export function attemptWithoutWords(attempt: Attempt): Attempt {
  return { ...attempt, outcome: withoutWords(attempt.outcome) };
}
