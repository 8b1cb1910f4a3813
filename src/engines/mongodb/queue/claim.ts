import type { Document, Filter } from 'mongodb';
import type { ClaimedDelivery } from '../../../push/queue/delivery.ts';
import type { ClaimOptions } from '../../../push/queue/delivery-queue.ts';
import { newLeaseToken } from '../../stored/claims.ts';
import { toClaimed } from '../../stored/delivery.ts';
import type { DeliveryCollections, DeliveryDocument } from './collections.ts';
import { rowOf } from './documents.ts';
import { endWithdrawn } from './withdrawals.ts';

/** Up to so many due deliveries are all read; of more, one for each lane, then those of lanes with free slots. */
const MAX_LOOKED_AT = 200;
/** Another dispatcher may claim what was chosen first; then that one has made progress. */
const MAX_ROUNDS = 16;

type Chosen = Pick<DeliveryDocument, '_id' | 'prefix'>;
type Deliveries = DeliveryCollections['deliveries'];

/** What is left to claim: the options less what is claimed already. */
interface Wanted {
  /** Nothing is due before. */
  readonly fromMs: number;
  readonly nowMs: number;
  readonly limit: number;
  readonly freeSlots: (prefix: string) => number;
}

/**
 * Chooses by the indexes alone, leases all chosen by one guarded update, and reads those that it won. The due time
 * is the guard: of several dispatchers one wins each delivery.
 */
export async function claimDue(
  collections: DeliveryCollections,
  options: ClaimOptions,
  fromMs: number,
): Promise<readonly ClaimedDelivery[]> {
  const token = newLeaseToken(options.holder);
  const taken = new Map<string, number>();
  const freeSlots = (prefix: string): number => options.laneCapacity(prefix) - (taken.get(prefix) ?? 0);
  const claimed: ClaimedDelivery[] = [];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const wanted = { fromMs, nowMs: options.nowMs, limit: options.limit - claimed.length, freeSlots };
    const chosen = await choose(collections, wanted);
    if (chosen.length === 0) break;
    const won = await lease(collections, chosen, { token, ...options });
    for (const document of won) {
      taken.set(document.prefix, (taken.get(document.prefix) ?? 0) + 1);
      claimed.push(toClaimed(rowOf(document), { ...document.record }, token));
    }
    if (won.length === chosen.length) break;
  }
  return claimed;
}

async function choose({ deliveries }: DeliveryCollections, wanted: Wanted): Promise<readonly Chosen[]> {
  if (wanted.limit <= 0) return [];
  const due = await deliveries
    .find({ due_at: { $gte: wanted.fromMs, $lte: wanted.nowMs } }, { projection: { prefix: 1 }, hint: 'due' })
    .sort({ due_at: 1, prefix: 1 })
    .limit(MAX_LOOKED_AT)
    .toArray();
  return due.length < MAX_LOOKED_AT ? fitting(due, wanted) : chooseByLane(deliveries, wanted);
}

/** The longest waiting lanes first, as many of each as it has free slots. `due` is oldest first. */
function fitting(due: readonly Chosen[], { limit, freeSlots }: Wanted): Chosen[] {
  const chosen: Chosen[] = [];
  for (const [prefix, lane] of Map.groupBy(due, (entry) => entry.prefix)) {
    const most = Math.max(0, Math.min(freeSlots(prefix), limit - chosen.length));
    for (const entry of lane.slice(0, most)) chosen.push(entry);
    if (chosen.length === limit) break;
  }
  return chosen;
}

/** The same of many: each lane has one due at least, so no more lanes than the limit are searched. */
async function chooseByLane(deliveries: Deliveries, wanted: Wanted): Promise<Chosen[]> {
  const { nowMs, limit, freeSlots } = wanted;
  const heads = [{ $match: { due_at: { $lte: nowMs } } }, { $sort: { due_at: 1, _id: 1 } }];
  const lanes = await deliveries
    .aggregate<{ _id: string }>([...laneHeads(), ...heads], { hint: 'due_in_lane' })
    .toArray();
  const free = lanes.filter(({ _id }) => freeSlots(_id) > 0).slice(0, limit);
  const due = await Promise.all(
    free.map(({ _id: prefix }) =>
      deliveries
        .find(
          { state: 'pending', prefix, due_at: { $lte: nowMs } },
          { projection: { prefix: 1 }, hint: 'due_in_lane' },
        )
        .sort({ due_at: 1 })
        .limit(Math.min(freeSlots(prefix), limit))
        .toArray(),
    ),
  );
  return due.flat().slice(0, limit);
}

/** The first due time of each lane that has something pending: the index is searched once for each. */
export function laneHeads(): Document[] {
  return [
    { $match: { state: 'pending' } },
    { $sort: { state: 1, prefix: 1, due_at: 1 } },
    { $group: { _id: '$prefix', due_at: { $first: '$due_at' } } },
  ];
}

/** Those won, in the order chosen, without withdrawn ones: the process that stored those may have died early. */
async function lease(
  collections: DeliveryCollections,
  chosen: readonly Chosen[],
  { token, nowMs, leaseMs }: { readonly token: string; readonly nowMs: number; readonly leaseMs: number },
): Promise<readonly Omit<DeliveryDocument, 'attempts'>[]> {
  const { deliveries } = collections;
  const ids = chosen.map(({ _id }) => _id);
  const isDue: Filter<DeliveryDocument> = { _id: { $in: ids }, due_at: { $lte: nowMs } };
  const change = { $set: { lease: token, due_at: nowMs + leaseMs } };
  const { modifiedCount } = await deliveries.updateMany(isDue, change, { hint: '_id_' });
  if (modifiedCount === 0) return [];
  const isMine = { _id: { $in: ids }, lease: token };
  const projection: Document = { attempts: 0 };
  const won = await deliveries.find(isMine, { projection, hint: '_id_' }).toArray();
  const withdrawn = await endWithdrawn(
    collections,
    won.map(({ transaction_id }) => transaction_id),
  );
  const place = new Map(ids.map((id, index) => [id, index]));
  return won
    .filter(({ transaction_id }) => !withdrawn.has(transaction_id))
    .sort((a, b) => (place.get(a._id) ?? 0) - (place.get(b._id) ?? 0));
}
