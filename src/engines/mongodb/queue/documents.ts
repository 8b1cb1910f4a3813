import { type Filter, ObjectId, type UpdateFilter } from 'mongodb';
import {
  type Attempt,
  type AttemptOutcome,
  type ClaimedDelivery,
  type Delivery,
  type DeliverySummary,
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookHealth,
} from '../../../push/queue/delivery-queue.ts';
import type { Transition } from '../../../push/queue/next-state.ts';
import type { AttemptDocument, DeliveryDocument, LaneDocument, RecordDocument } from './collections.ts';

/** What lists and claims don't need is not read. */
export type SummaryDocument = Omit<DeliveryDocument, 'record' | 'attempts'>;

/** A new delivery: due when it was created, or claimed. */
export function toDocument(
  delivery: NewDelivery,
  claim?: { readonly leaseToken: string; readonly untilMs: number },
): DeliveryDocument {
  return {
    ...identityOf(delivery),
    state: 'pending',
    reason: null,
    cycle: 1,
    attempts_in_cycle: 0,
    due_at: claim?.untilMs ?? delivery.createdAtMs,
    ...(claim === undefined ? {} : { lease: claim.leaseToken }),
    record: toRecordDocument(delivery.record),
    attempts: [],
  };
}

/** The fields of a delivery that never change, under their stored names. */
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

export function toClaimed(document: Omit<DeliveryDocument, 'attempts'>, leaseToken: string): ClaimedDelivery {
  return {
    ...toIdentity(document),
    record: toRecord(document.record),
    cycle: document.cycle,
    attemptNumber: document.attempts_in_cycle + 1,
    leaseToken,
  };
}

export function toHealth(lane: LaneDocument): WebhookHealth {
  return {
    failedInARow: lane.failed_in_a_row,
    failingSinceMs: lane.failing_since,
    lastAnswers: lane.last_answers,
  };
}

/** A failure streak's fields under their stored names. */
export function toStreakFields({ failedInARow, failingSinceMs, lastAnswers }: WebhookHealth) {
  return { failed_in_a_row: failedInARow, failing_since: failingSinceMs, last_answers: [...lastAnswers] };
}

/** What a delivery must be for a transition. */
export function guardOf(when: Transition['when']): Filter<DeliveryDocument> {
  const { states, leaseToken, cycle, attemptsInCycle } = when;
  return {
    state: { $in: [...states] },
    ...(leaseToken === undefined ? {} : { lease: leaseToken }),
    ...(cycle === undefined ? {} : { cycle }),
    ...(attemptsInCycle === undefined ? {} : { attempts_in_cycle: attemptsInCycle }),
  };
}

/** The fields that a transition sets, and the names of those that it removes. */
export function changedFields(changed: Transition['set']) {
  if (changed === undefined) return { set: {}, unset: [] };
  const { state, reason, cycle, attemptsInCycle, dueAtMs, endedAtMs } = changed;
  const set = {
    state,
    reason,
    ...(cycle === undefined ? {} : { cycle }),
    ...(attemptsInCycle === undefined ? {} : { attempts_in_cycle: attemptsInCycle }),
    ...(dueAtMs === null ? {} : { due_at: dueAtMs }),
    ...(endedAtMs === null ? {} : { ended_at: endedAtMs }),
  };
  const unset = [
    'lease',
    ...(dueAtMs === null ? ['due_at'] : []),
    ...(endedAtMs === null ? ['ended_at'] : []),
  ];
  return { set, unset };
}

/** Carries out a transition; `by` marks the attempt that it records. */
export function updateOf(
  { set: changed, attempt }: Transition,
  by?: ObjectId,
): UpdateFilter<DeliveryDocument> {
  const { set, unset } = changedFields(changed);
  const newest = attempt && { $each: [toAttemptDocument(attempt, by)], $slice: -MAX_ATTEMPTS_KEPT };
  return {
    ...(changed && { $set: set, $unset: Object.fromEntries(unset.map((name) => [name, ''])) }),
    ...(newest && { $inc: { attempts_in_cycle: 1 }, $push: { attempts: newest } }),
  };
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
