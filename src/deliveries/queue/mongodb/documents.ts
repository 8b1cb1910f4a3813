import { ObjectId } from 'mongodb';
import type {
  Attempt,
  AttemptOutcome,
  ClaimedDelivery,
  Delivery,
  DeliverySummary,
  NewDelivery,
  WebhookHealth,
} from '../delivery-queue.ts';
import type { AttemptDocument, DeliveryDocument, LaneDocument, RecordDocument } from './collections.ts';

/** What changes nothing in a list and in a claim is not read. */
export type SummaryDocument = Omit<DeliveryDocument, 'record' | 'attempts'>;

/** A delivery as it is stored first: due when it was created, or leased. */
export function toDocument(
  delivery: NewDelivery,
  claim?: { readonly lease: string; readonly untilMs: number },
): DeliveryDocument {
  return {
    ...identityOf(delivery),
    state: 'pending',
    reason: null,
    cycle: 1,
    attempts_in_cycle: 0,
    due_at: claim?.untilMs ?? delivery.createdAtMs,
    ...(claim === undefined ? {} : { lease: claim.lease }),
    record: toRecordDocument(delivery.record),
    attempts: [],
  };
}

/** A delivery's fields that never change, under their stored names. */
export function identityOf(delivery: Omit<NewDelivery, 'record'>) {
  return {
    _id: delivery.id,
    prefix: delivery.prefix,
    account_id: delivery.accountId,
    transaction_id: delivery.transactionId,
    type: delivery.type,
    created_at: delivery.createdAtMs,
    position: delivery.position,
    recorded_at: delivery.recordedAtMs,
  };
}

export function toRecordDocument(record: NewDelivery['record']): RecordDocument {
  const { head, mobileNumber, fees, pump, odometer } = record;
  return { head, mobile_number: mobileNumber, fees, pump, odometer };
}

export function toAttemptDocument(attempt: Attempt, by = new ObjectId()): AttemptDocument {
  const { cycle, number, startedAtMs, durationMs, outcome } = attempt;
  return {
    cycle,
    number,
    started_at: startedAtMs,
    duration: durationMs,
    outcome: JSON.stringify(outcome),
    by,
  };
}

export function toSummary(document: SummaryDocument): DeliverySummary {
  return {
    ...toIdentity(document),
    state: document.state,
    reason: document.reason,
    cycle: document.cycle,
    attemptsInCycle: document.attempts_in_cycle,
    dueAtMs: document.due_at ?? null,
  };
}

export function toDelivery(document: DeliveryDocument): Delivery {
  return {
    ...toSummary(document),
    record: toRecord(document.record),
    attempts: document.attempts.map(toAttempt),
  };
}

export function toClaimed(document: Omit<DeliveryDocument, 'attempts'>, lease: string): ClaimedDelivery {
  return {
    ...toIdentity(document),
    record: toRecord(document.record),
    cycle: document.cycle,
    attemptNumber: document.attempts_in_cycle + 1,
    lease,
  };
}

export function toHealth(lane: LaneDocument): WebhookHealth {
  return {
    failedInARow: lane.failed_in_a_row,
    failingSinceMs: lane.failing_since,
    lastAnswers: lane.last_answers,
  };
}

/** A run's fields under their stored names. */
export function toRunFields({ failedInARow, failingSinceMs, lastAnswers }: WebhookHealth) {
  return { failed_in_a_row: failedInARow, failing_since: failingSinceMs, last_answers: [...lastAnswers] };
}

function toIdentity(document: SummaryDocument): Omit<NewDelivery, 'record'> {
  return {
    id: document._id,
    prefix: document.prefix,
    accountId: document.account_id,
    transactionId: document.transaction_id,
    type: document.type,
    createdAtMs: document.created_at,
    position: document.position,
    recordedAtMs: document.recorded_at,
  };
}

function toRecord({ head, mobile_number, fees, pump, odometer }: RecordDocument): NewDelivery['record'] {
  return { head, mobileNumber: mobile_number, fees, pump, odometer };
}

function toAttempt({ cycle, number, started_at, duration, outcome }: AttemptDocument): Attempt {
  return {
    cycle,
    number,
    startedAtMs: started_at,
    durationMs: duration,
    outcome: JSON.parse(outcome) as AttemptOutcome,
  };
}
