import { retryUpsert } from '../../../mongodb/prepared-collections.ts';
import type { AttemptOutcome, DeliveryState } from '../delivery-queue.ts';
import { NO_RECORD, WITHDRAWN, withoutWords } from '../withdrawal.ts';
import type { DeliveryCollections } from './collections.ts';
import { toRecordDocument } from './documents.ts';

/** States of a delivery that may still be attempted. */
export const OPEN: readonly DeliveryState[] = ['pending', 'held'];
/** Ends what waits: goes with a state, a reason and an end. */
export const NO_MORE_DUE = { due_at: '', lease: '' } as const;

/** An attempt on one that keeps its record is stored as it was, on any other without the receiver's words. */
export const KEEPS_RECORD = { 'record.head': { $ne: '' } } as const;
export const KEEPS_NO_RECORD = { 'record.head': '' } as const;

/**
 * Withdrawals are final in either order, without a transaction: the mark stands before deliveries are ended, and
 * whoever makes one due (enqueue, claim, redeliver) looks for the mark after that, and ends it again.
 */
export async function withdraw(
  { withdrawals, deliveries }: DeliveryCollections,
  transactionId: number,
  nowMs: number,
): Promise<void> {
  await retryUpsert(() => withdrawals.replaceOne({ _id: transactionId }, {}, { upsert: true }));
  await deliveries.updateMany(
    { transaction_id: transactionId, state: { $in: OPEN } },
    { $set: { state: 'withdrawn', reason: WITHDRAWN, ended_at: nowMs }, $unset: NO_MORE_DUE },
  );
}

/** Empties the records, and then what receivers said: from the first on, no attempt is kept with an answer's text. */
export async function eraseRecords(
  { deliveries }: DeliveryCollections,
  transactionId: number,
): Promise<void> {
  const ofTransaction = { transaction_id: transactionId };
  await deliveries.updateMany(ofTransaction, { $set: { record: toRecordDocument(NO_RECORD) } });
  for await (const { _id, attempts } of deliveries.find(ofTransaction, { projection: { attempts: 1 } })) {
    const writes = attempts.map(({ by, outcome }) => ({
      updateOne: {
        filter: { _id, 'attempts.by': by },
        update: { $set: { 'attempts.$.outcome': withoutWordsOf(outcome) } },
      },
    }));
    if (writes.length > 0) await deliveries.bulkWrite(writes);
  }
}

function withoutWordsOf(outcome: string): string {
  return JSON.stringify(withoutWords(JSON.parse(outcome) as AttemptOutcome));
}

/** Which of the transactions were withdrawn. What is open of them is ended: it counts as born withdrawn. */
export async function endWithdrawn(
  { withdrawals, deliveries }: DeliveryCollections,
  transactionIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const marks = await withdrawals.find({ _id: { $in: [...new Set(transactionIds)] } }).toArray();
  const withdrawn = marks.map(({ _id }) => _id);
  if (withdrawn.length > 0) {
    await deliveries.updateMany({ transaction_id: { $in: withdrawn }, state: { $in: OPEN } }, [
      {
        $set: {
          state: 'withdrawn',
          reason: WITHDRAWN,
          ended_at: '$created_at',
          record: { $literal: toRecordDocument(NO_RECORD) },
        },
      },
      { $unset: Object.keys(NO_MORE_DUE) },
    ]);
  }
  return new Set(withdrawn);
}
