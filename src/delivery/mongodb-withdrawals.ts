import { retryUpsert } from '../mongodb/prepared-collections.ts';
import type { DeliveryState } from './delivery-queue.ts';
import type { DeliveryCollections, RecordDocument } from './mongodb-collections.ts';
import { WITHDRAWN } from './withdrawal.ts';

/** States of a delivery that may still be attempted. */
export const OPEN: readonly DeliveryState[] = ['pending', 'held'];
/** Ends what waits: goes with a state, a reason and an end. */
export const NO_MORE_DUE = { due_at: '', lease: '' } as const;

const ERASED: RecordDocument = { head: '', mobile_number: null, fees: '', pump: null, odometer: null };

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

export async function eraseRecords(
  { deliveries }: DeliveryCollections,
  transactionId: number,
): Promise<void> {
  await deliveries.updateMany({ transaction_id: transactionId }, { $set: { record: ERASED } });
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
      { $set: { state: 'withdrawn', reason: WITHDRAWN, ended_at: '$created_at' } },
      { $unset: Object.keys(NO_MORE_DUE) },
    ]);
  }
  return new Set(withdrawn);
}
