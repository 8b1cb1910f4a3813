import {
  type ClaimedDelivery,
  type ClaimOptions,
  type NewDelivery,
  newLeaseToken,
} from '../../../push/queue/delivery-queue.ts';
import { endWithdrawn } from './changes.ts';
import { leaseTokenOf } from './claim.ts';
import { type DeliveryCollections, insertMissing } from './collections.ts';
import { toDocument } from './documents.ts';

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
  const token = newLeaseToken(claimFor?.holder ?? '');
  const untilMs = claimFor === undefined ? 0 : claimFor.nowMs + claimFor.leaseMs;
  const leased = new Set<string>();
  const documents = given.map((delivery) => {
    if (!slots.consume(delivery.prefix)) return toDocument(delivery);
    leased.add(delivery.id);
    return toDocument(delivery, { leaseToken: token, untilMs });
  });
  const existing = await insertMissing(collections.deliveries, documents);
  const transactionIds = given.map(({ transactionId }) => transactionId);
  const withdrawn = await endWithdrawn(collections, transactionIds);
  const fresh = given.filter(({ id, transactionId }) => !existing.has(id) && !withdrawn.has(transactionId));
  for (const { id, prefix, transactionId } of given) {
    if (leased.has(id) && (existing.has(id) || withdrawn.has(transactionId))) slots.giveBack(prefix);
  }
  const more = fresh.filter(({ id, prefix }) => !leased.has(id) && slots.consume(prefix));
  const won = await leaseMore(collections, more, { token, untilMs });
  const claimed = fresh.filter(({ id }) => leased.has(id) || won.has(id));
  return {
    claimed: claimed.map((delivery) => ({
      ...delivery,
      cycle: 1,
      attemptNumber: 1,
      leaseToken: leaseTokenOf(delivery.prefix, token),
    })),
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

/** The free slots of each lane; each lane's capacity is asked for once. */
class FreeSlots {
  readonly #capacity: (prefix: string) => number;
  readonly #free = new Map<string, number>();

  constructor(capacity: (prefix: string) => number) {
    this.#capacity = capacity;
  }

  consume(prefix: string): boolean {
    const free = this.#free.get(prefix) ?? this.#capacity(prefix);
    this.#free.set(prefix, free > 0 ? free - 1 : free);
    return free > 0;
  }

  giveBack(prefix: string): void {
    this.#free.set(prefix, (this.#free.get(prefix) ?? 0) + 1);
  }
}

/** MongoDB itself would take anything. */
function assertStorable(delivery: NewDelivery): void {
  const { id, accountId, transactionId, createdAtMs, position, recordedAtMs } = delivery;
  const numbers = { accountId, transactionId, createdAtMs, position, recordedAtMs };
  for (const [name, value] of Object.entries(numbers)) {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${name} of delivery ${id} is not a whole number`);
  }
}
