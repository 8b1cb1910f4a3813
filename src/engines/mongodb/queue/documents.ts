import type { Document, Filter, UpdateFilter } from 'mongodb';
import {
  type Attempt,
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookHealth,
} from '../../../push/queue/delivery.ts';
import type { DeliveryProgress, Transition } from '../../../push/queue/next-state.ts';
import {
  fromStored,
  IDENTITY,
  PROGRESS,
  RECORD,
  type Row,
  STREAK,
  storedAttempt,
  toStored,
} from '../../stored/delivery.ts';
import type { DeliveryDocument, LaneDocument, RecordDocument } from './collections.ts';

/** A delivery as it is inserted or replaced. */
export function toDocument(
  delivery: Omit<NewDelivery, 'record'>,
  progress: DeliveryProgress,
  content: { readonly record: NewDelivery['record']; readonly attempts: readonly Attempt[] },
): DeliveryDocument {
  const { id: _id, ...identity } = toStored(IDENTITY, delivery);
  return {
    _id,
    ...identity,
    ...changedFields(progress).set,
    record: toRecordDocument(content.record),
    attempts: content.attempts.slice(-MAX_ATTEMPTS_KEPT).map(storedAttempt),
  } as unknown as DeliveryDocument;
}

export function toRecordDocument(record: NewDelivery['record']): RecordDocument {
  return toStored(RECORD, record) as unknown as RecordDocument;
}

/** A delivery under the stored names that all engines share. */
export function rowOf(document: Pick<DeliveryDocument, '_id'>): Row {
  return { ...document, id: document._id };
}

export function toHealth(lane: Partial<LaneDocument>): WebhookHealth {
  return fromStored(STREAK, lane);
}

export function toLaneDocument(prefix: string, health: WebhookHealth): LaneDocument {
  return { _id: prefix, ...toStored(STREAK, health) } as unknown as LaneDocument;
}

/** What a delivery must be for a transition. */
export function guardOf({ when }: Transition): Filter<DeliveryDocument> {
  const { states, ...equal } = when;
  return { state: { $in: [...states] }, ...changedFields(equal).set };
}

/** The fields that are set, and the names of those that are removed: a time that does not apply, a claim that ended. */
export function changedFields(changed: Partial<DeliveryProgress>) {
  const set: Record<string, unknown> = {};
  const unset: string[] = [];
  for (const [name, field] of Object.entries(PROGRESS)) {
    const value = changed[name as keyof DeliveryProgress];
    if (value === null && field !== PROGRESS.reason) unset.push(field);
    else if (value !== undefined) set[field] = value;
  }
  return { set, unset };
}

/** Carries out a transition, or sets a delivery's next progress; counts the attempt. */
export function updateOf({
  set: changed,
  attempt,
}: Pick<Transition, 'set' | 'attempt'>): UpdateFilter<DeliveryDocument> {
  const { set, unset } = changedFields({ ...changed, leaseToken: null });
  const newest = attempt && { $each: [storedAttempt(attempt)], $slice: -MAX_ATTEMPTS_KEPT };
  return {
    ...(changed && { $set: set, $unset: Object.fromEntries(unset.map((name) => [name, ''])) }),
    ...(newest && { $inc: { attempts_in_cycle: 1 }, $push: { attempts: newest } }),
  } as unknown as UpdateFilter<DeliveryDocument>;
}

/**
 * Carries out the transition of each id, as `updateOf` does: one update of many documents, since each statement of a bulk
 * write costs the server as much again as its change.
 */
export function updateEach(
  transitions: ReadonlyMap<string, Pick<Transition, 'set' | 'attempt'>>,
): Document[] {
  const changes = [...transitions.values()].map(({ set, attempt }) => {
    if (set === undefined) throw new TypeError('a change of many deliveries sets the state of each');
    return { ...changedFields(set).set, attempts: attempt === undefined ? [] : [storedAttempt(attempt)] };
  });
  const index = { $indexOfArray: [{ $literal: [...transitions.keys()] }, '$_id'] };
  const { state, reason, endedAtMs, dueAtMs, leaseToken } = PROGRESS;
  const changed = [state, reason, endedAtMs, dueAtMs, leaseToken].map((name) => [name, `$change.${name}`]);
  const attempts = { $concatArrays: ['$attempts', '$change.attempts'] };
  return [
    { $set: { change: { $arrayElemAt: [{ $literal: changes }, index] } } },
    {
      $set: {
        ...Object.fromEntries(changed), // what the change does not have is removed
        attempts_in_cycle: { $add: ['$attempts_in_cycle', { $size: '$change.attempts' }] },
        attempts: { $slice: [attempts, -MAX_ATTEMPTS_KEPT] },
      },
    },
    { $unset: 'change' },
  ];
}
