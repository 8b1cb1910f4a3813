import { NO_RECORD, transitionOf } from '../../../push/queue/next-state.ts';
import { retryUpsert } from '../driver/prepared-collections.ts';
import type { DeliveryCollections } from './collections.ts';
import { changedFields, guardOf, toRecordDocument, updateOf } from './documents.ts';

/**
 * Withdrawals are final in either order, without a transaction: the mark is stored before deliveries are ended, and
 * whoever makes a delivery due (enqueue, claim, redeliver) looks for the mark after that, and ends it again.
 */
export async function withdraw(
  { withdrawals, deliveries }: DeliveryCollections,
  transactionId: number,
  nowMs: number,
): Promise<void> {
  await retryUpsert(() =>
    withdrawals.replaceOne({ _id: transactionId }, { made_at: nowMs }, { upsert: true }),
  );
  const transition = transitionOf({ kind: 'withdraw' }, nowMs);
  await deliveries.updateMany(
    { transaction_id: transactionId, ...guardOf(transition) },
    updateOf(transition),
  );
}

/** Which of the transactions were withdrawn. Their open deliveries end as if they had been stored as withdrawn. */
export async function endWithdrawn(
  { withdrawals, deliveries }: DeliveryCollections,
  transactionIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const marks = await withdrawals.find({ _id: { $in: [...new Set(transactionIds)] } }).toArray();
  const withdrawn = marks.map(({ _id }) => _id);
  if (withdrawn.length > 0) {
    const transition = transitionOf({ kind: 'withdraw' }, 0);
    const { set, unset } = changedFields({ ...transition.set, leaseToken: null });
    const record = { $literal: toRecordDocument(NO_RECORD) };
    await deliveries.updateMany({ transaction_id: { $in: withdrawn }, ...guardOf(transition) }, [
      { $set: { ...set, ended_at: '$created_at', record } },
      { $unset: unset },
    ]);
  }
  return new Set(withdrawn);
}
