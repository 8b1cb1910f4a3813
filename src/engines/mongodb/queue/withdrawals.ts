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
  transactionIds: readonly number[],
  nowMs: number,
): Promise<void> {
  const marks = [...new Set(transactionIds)].map((id) => ({
    replaceOne: { filter: { _id: id }, replacement: { made_at: nowMs }, upsert: true },
  }));
  await retryUpsert(() => withdrawals.bulkWrite(marks, { ordered: false }));
  const transition = transitionOf({ kind: 'withdraw' }, nowMs);
  await deliveries.updateMany(
    { transaction_id: { $in: [...transactionIds] }, ...guardOf(transition) },
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
