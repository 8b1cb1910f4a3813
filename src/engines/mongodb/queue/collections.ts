import type { Collection, Db, OptionalUnlessRequiredId } from 'mongodb';
import type { DeliveryState, NewDelivery } from '../../../push/queue/delivery.ts';
import { type CollectionsPlan, duplicatesIn } from '../driver/prepared-collections.ts';

/** A delivery with its record and attempts. Times are milliseconds; fields that do not apply are absent. */
export interface DeliveryDocument {
  readonly _id: string;
  readonly prefix: string;
  readonly account_id: number;
  readonly transaction_id: number;
  readonly type: NewDelivery['type'];
  readonly created_at: number;
  readonly position: number;
  readonly recorded_at: number;
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly cycle: number;
  readonly attempts_in_cycle: number;
  /** While it is pending: when it is due, or its lease ends. */
  readonly due_at?: number;
  /** The stored token of the last claim, until that is reported. */
  readonly lease?: string;
  readonly ended_at?: number;
  readonly record: RecordDocument;
  readonly attempts: readonly AttemptDocument[];
}

export interface RecordDocument {
  readonly head: string;
  readonly mobile_number: string | null;
  readonly fees: string;
  readonly pump: string | null;
  readonly odometer: string | null;
}

export interface AttemptDocument {
  readonly cycle: number;
  readonly number: number;
  readonly started_at: number;
  readonly duration: number;
  readonly outcome: string;
}

/** A transaction's events may arrive in either order. */
export interface WithdrawalDocument {
  readonly _id: number;
  /** Absent in those of a former version. */
  readonly made_at?: number;
}

/** The failure streak of one lane; a lane without a document never had one. Never removed. */
export interface LaneDocument {
  readonly _id: string;
  readonly failed_in_a_row: number;
  readonly failing_since: number | null;
  readonly last_answers: readonly string[];
  /** As of which time it was reset last; absent where it never was. */
  readonly reset_at?: number;
}

export interface LogDocument {
  /** Always `log`. */
  readonly _id: string;
  readonly id: string;
  readonly started_at: number;
}

export interface DeliveryCollections {
  readonly deliveries: Collection<DeliveryDocument>;
  readonly withdrawals: Collection<WithdrawalDocument>;
  readonly lanes: Collection<LaneDocument>;
  readonly log: Collection<LogDocument>;
}

/** Works on the collections, at most `withinMs`: five seconds unless given. */
export type Use = <T>(
  work: (collections: DeliveryCollections) => Promise<T>,
  withinMs?: number,
) => Promise<T>;

/** A list or a copy may read much of the log. */
export const LONG_QUERY_MS = 20_000;

/** The states that operators look for among millions of delivered ones. */
export const NOT_DELIVERED: readonly DeliveryState[] = ['pending', 'held', 'failed', 'withdrawn'];

/**
 * `due` finds what is due earliest; `due_in_lane` finds one entry for each lane, and the oldest of one lane. Both
 * hold pending deliveries only, and end in the id, so that a choice reads no delivery.
 */
export const DELIVERIES_PLAN: CollectionsPlan = {
  name: 'deliveries',
  version: 1,
  collections: {
    deliveries: [
      {
        name: 'due',
        key: { due_at: 1, prefix: 1, _id: 1 },
        partialFilterExpression: { due_at: { $exists: true } },
      },
      {
        name: 'due_in_lane',
        key: { state: 1, prefix: 1, due_at: 1, _id: 1 },
        partialFilterExpression: { state: 'pending' },
      },
      {
        name: 'held',
        key: { state: 1, account_id: 1, _id: 1 },
        partialFilterExpression: { state: 'held' },
      },
      {
        name: 'held_in_lane',
        key: { prefix: 1, _id: 1 },
        partialFilterExpression: { state: 'held' },
      },
      { name: 'ended', key: { ended_at: 1 }, sparse: true },
      { name: 'by_transaction', key: { transaction_id: 1, created_at: 1, _id: 1 } },
      { name: 'by_time', key: { created_at: 1, _id: 1 } },
      { name: 'by_lane', key: { prefix: 1, created_at: 1, _id: 1 } },
      { name: 'by_account', key: { account_id: 1, created_at: 1, _id: 1 } },
      {
        name: 'by_state',
        key: { state: 1, created_at: 1, _id: 1, prefix: 1, account_id: 1 },
        partialFilterExpression: { state: { $in: [...NOT_DELIVERED] } },
      },
    ],
    withdrawals: [{ name: 'by_time', key: { made_at: 1 } }],
    lanes: [
      {
        name: 'failing',
        key: { failed_in_a_row: 1 },
        partialFilterExpression: { failed_in_a_row: { $gt: 0 } },
      },
    ],
  },
};

export function deliveryCollections(db: Db): DeliveryCollections {
  return {
    deliveries: db.collection('deliveries'),
    withdrawals: db.collection('withdrawals'),
    lanes: db.collection('lanes'),
    log: db.collection('delivery_log'),
  };
}

/**
 * Inserts documents whose id is not there yet, in one round trip; says which ids existed. No two of the
 * given documents share an id.
 */
export async function insertMissing<T extends { readonly _id: string | number }>(
  collection: Collection<T>,
  documents: readonly T[],
): Promise<ReadonlySet<T['_id']>> {
  const existing = new Set<T['_id']>();
  if (documents.length === 0) return existing;
  try {
    await collection.insertMany(documents as OptionalUnlessRequiredId<T>[], { ordered: false });
  } catch (error) {
    for (const index of duplicatesIn(error)) existing.add((documents[index] as T)._id);
  }
  return existing;
}
