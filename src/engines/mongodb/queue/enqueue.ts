import type { ClaimedDelivery, NewDelivery } from '../../../push/queue/delivery.ts';
import type { ClaimOptions } from '../../../push/queue/delivery-queue.ts';
import { newProgress } from '../../../push/queue/next-state.ts';
import { FreeSlots, newLeaseToken } from '../../stored/claims.ts';
import { type DeliveryCollections, insertMissing } from './collections.ts';
import { toDocument } from './documents.ts';
import { endWithdrawn } from './withdrawals.ts';

/** What became of a batch; deliveries that were stored before are in none of it. */
export interface StoredNew {
  readonly claimed: readonly ClaimedDelivery[];
  /** Stored as pending and left for `claim`. */
  readonly unclaimed: number;
}

/**
 * Stores the new deliveries, leased as far as their lanes have free slots, in one round trip; a second one
 * looks for withdrawals, also of those stored before: storing a batch again completes what a crash interrupted.
 */
export async function storeNew(
  collections: DeliveryCollections,
  deliveries: readonly NewDelivery[],
  claimFor: Omit<ClaimOptions, 'limit'> | undefined,
): Promise<StoredNew> {
  const given = [...new Map(deliveries.toReversed().map((delivery) => [delivery.id, delivery])).values()];
  given.reverse(); // of two with one id the first
  for (const delivery of given) assertStorable(delivery);
  const slots = new FreeSlots(claimFor?.laneCapacity ?? (() => 0));
  const leaseToken = newLeaseToken(claimFor?.holder ?? '');
  const lease = {
    token: leaseToken,
    untilMs: claimFor === undefined ? 0 : claimFor.nowMs + claimFor.leaseMs,
  };
  const leased = new Set<string>();
  const documents = given.map((delivery) => {
    const isLeased = slots.take(delivery.prefix);
    if (isLeased) leased.add(delivery.id);
    const progress = newProgress(delivery, isLeased ? lease : undefined);
    return toDocument(delivery, progress, { record: delivery.record, attempts: [] });
  });
  const existing = await insertMissing(collections.deliveries, documents);
  const transactionIds = given.map(({ transactionId }) => transactionId);
  const withdrawn = await endWithdrawn(collections, transactionIds);
  const isFresh = ({ id, transactionId }: NewDelivery) => !existing.has(id) && !withdrawn.has(transactionId);
  for (const delivery of given)
    if (leased.has(delivery.id) && !isFresh(delivery)) slots.giveBack(delivery.prefix);
  const fresh = given.filter(isFresh);
  const more = fresh.filter(({ id, prefix }) => !leased.has(id) && slots.take(prefix));
  const won = await leaseMore(collections, more, lease);
  const claimed = fresh.filter(({ id }) => leased.has(id) || won.has(id));
  return {
    claimed: claimed.map((delivery) => ({ ...delivery, cycle: 1, attemptNumber: 1, leaseToken })),
    unclaimed: fresh.length - claimed.length,
  };
}

/** Leases some that were stored without one: their slots were kept for others, stored before or withdrawn. */
async function leaseMore(
  { deliveries }: DeliveryCollections,
  more: readonly NewDelivery[],
  { token, untilMs }: { readonly token: string; readonly untilMs: number },
): Promise<ReadonlySet<string>> {
  if (more.length === 0) return new Set();
  const ids = more.map(({ id }) => id);
  const free = { _id: { $in: ids }, state: 'pending', lease: { $exists: false } } as const;
  await deliveries.updateMany(free, { $set: { lease: token, due_at: untilMs } }, { hint: '_id_' });
  const won = deliveries.find({ _id: { $in: ids }, lease: token }, { projection: { _id: 1 }, hint: '_id_' });
  return new Set((await won.toArray()).map(({ _id }) => _id));
}

/** MongoDB itself would take anything. */
function assertStorable(delivery: NewDelivery): void {
  const { id, accountId, transactionId, createdAtMs, position, recordedAtMs } = delivery;
  const numbers = { accountId, transactionId, createdAtMs, position, recordedAtMs };
  for (const [name, value] of Object.entries(numbers)) {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${name} of delivery ${id} is not a whole number`);
  }
}
