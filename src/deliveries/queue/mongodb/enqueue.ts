import type { ClaimedDelivery, ClaimOptions, NewDelivery } from '../delivery-queue.ts';
import { newLease } from '../lease.ts';
import { handedOut } from './claim.ts';
import { type DeliveryCollections, insertMissing } from './collections.ts';
import { toDocument } from './documents.ts';
import { endWithdrawn } from './withdrawals.ts';

/** What became of a batch; deliveries that were there already are in none of it. */
export interface StoredNew {
  readonly claimed: readonly ClaimedDelivery[];
  /** Stored as pending and left for `claim`. */
  readonly unclaimed: number;
}

/**
 * Stores the deliveries that are new, leased as far as their lanes take them, in one round trip; a second one
 * looks for withdrawals, also of those that were there: storing a batch again mends what a crash left half done.
 */
export async function storeNew(
  collections: DeliveryCollections,
  deliveries: readonly NewDelivery[],
  claimFor: Omit<ClaimOptions, 'limit'> | undefined,
): Promise<StoredNew> {
  const given = [...new Map(deliveries.toReversed().map((delivery) => [delivery.id, delivery])).values()];
  given.reverse(); // of two with one id the first
  for (const delivery of given) assertStorable(delivery);
  const rooms = new Rooms(claimFor?.laneCapacity ?? (() => 0));
  const lease = newLease(claimFor?.holder ?? '');
  const untilMs = claimFor === undefined ? 0 : claimFor.nowMs + claimFor.leaseMs;
  const leased = new Set<string>();
  const documents = given.map((delivery) => {
    if (!rooms.take(delivery.prefix)) return toDocument(delivery);
    leased.add(delivery.id);
    return toDocument(delivery, { lease, untilMs });
  });
  const there = await insertMissing(collections.deliveries, documents);
  const transactionIds = given.map(({ transactionId }) => transactionId);
  const withdrawn = await endWithdrawn(collections, transactionIds);
  const fresh = given.filter(({ id, transactionId }) => !there.has(id) && !withdrawn.has(transactionId));
  for (const { id, prefix, transactionId } of given) {
    if (leased.has(id) && (there.has(id) || withdrawn.has(transactionId))) rooms.giveBack(prefix);
  }
  const more = fresh.filter(({ id, prefix }) => !leased.has(id) && rooms.take(prefix));
  const won = await leaseMore(collections, more, { lease, untilMs });
  const claimed = fresh.filter(({ id }) => leased.has(id) || won.has(id));
  return {
    claimed: claimed.map((delivery) => ({
      ...delivery,
      cycle: 1,
      attemptNumber: 1,
      lease: handedOut(delivery.prefix, lease),
    })),
    unclaimed: fresh.length - claimed.length,
  };
}

/** Leases some that were stored free: slots were kept for others that were there already or are withdrawn. */
async function leaseMore(
  { deliveries }: DeliveryCollections,
  more: readonly NewDelivery[],
  { lease, untilMs }: { readonly lease: string; readonly untilMs: number },
): Promise<ReadonlySet<string>> {
  if (more.length === 0) return new Set();
  const ids = more.map(({ id }) => id);
  const free = { _id: { $in: ids }, state: 'pending', lease: { $exists: false } } as const;
  await deliveries.updateMany(free, { $set: { lease, due_at: untilMs } }, { hint: '_id_' });
  const won = deliveries.find({ _id: { $in: ids }, lease }, { projection: { _id: 1 }, hint: '_id_' });
  return new Set((await won.toArray()).map(({ _id }) => _id));
}

/** The free slots of each lane; a lane is asked once. */
class Rooms {
  readonly #capacity: (prefix: string) => number;
  readonly #rooms = new Map<string, number>();

  constructor(capacity: (prefix: string) => number) {
    this.#capacity = capacity;
  }

  take(prefix: string): boolean {
    const room = this.#rooms.get(prefix) ?? this.#capacity(prefix);
    this.#rooms.set(prefix, room > 0 ? room - 1 : room);
    return room > 0;
  }

  giveBack(prefix: string): void {
    this.#rooms.set(prefix, (this.#rooms.get(prefix) ?? 0) + 1);
  }
}

/** The engine itself would take anything. */
function assertStorable(delivery: NewDelivery): void {
  const { id, accountId, transactionId, createdAtMs, position, recordedAtMs } = delivery;
  const numbers = { accountId, transactionId, createdAtMs, position, recordedAtMs };
  for (const [name, value] of Object.entries(numbers)) {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${name} of delivery ${id} is not a whole number`);
  }
}
