import type { Document, Filter } from 'mongodb';
import {
  type ClaimedDelivery,
  type ClaimOptions,
  newLeaseToken,
} from '../../../push/queue/delivery-queue.ts';
import { endWithdrawn } from './changes.ts';
import type { DeliveryCollections, DeliveryDocument } from './collections.ts';
import { toClaimed } from './documents.ts';
import { dueInLanes, dueLanes, earliestDue } from './due.ts';

/** Up to so many due deliveries are all read; of more, one for each lane, then those of lanes with free slots. */
const MAX_LOOKED_AT = 200;
/** Another dispatcher may claim what was chosen first; then that one has made progress. */
const MAX_ROUNDS = 16;

interface Chosen {
  readonly id: string;
  readonly prefix: string;
}

/** What is left to claim: the options less what is claimed already. */
interface Wanted {
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
): Promise<readonly ClaimedDelivery[]> {
  const token = newLeaseToken(options.holder);
  const taken = new Map<string, number>();
  const freeSlots = (prefix: string): number => options.laneCapacity(prefix) - (taken.get(prefix) ?? 0);
  const claimed: ClaimedDelivery[] = [];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const wanted = { nowMs: options.nowMs, limit: options.limit - claimed.length, freeSlots };
    const chosen = await choose(collections, wanted);
    if (chosen.length === 0) break;
    const won = await lease(collections, chosen, { token, ...options });
    for (const document of won) {
      taken.set(document.prefix, (taken.get(document.prefix) ?? 0) + 1);
      claimed.push(toClaimed(document, leaseTokenOf(document.prefix, token)));
    }
    if (won.length === chosen.length) break;
  }
  return claimed;
}

async function choose({ deliveries }: DeliveryCollections, wanted: Wanted): Promise<readonly Chosen[]> {
  if (wanted.limit <= 0) return [];
  const due = await earliestDue(deliveries, { byMs: wanted.nowMs, limit: MAX_LOOKED_AT });
  if (due.length < MAX_LOOKED_AT) return fitting(due, wanted);
  const lanes = await dueLanes(deliveries, wanted.nowMs);
  return dueInLanes(deliveries, lanes, wanted);
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

/** Those won, in the order chosen, without withdrawn ones: the process that stored those may have died early. */
async function lease(
  collections: DeliveryCollections,
  chosen: readonly Chosen[],
  { token, nowMs, leaseMs }: { readonly token: string; readonly nowMs: number; readonly leaseMs: number },
): Promise<readonly Omit<DeliveryDocument, 'attempts'>[]> {
  const { deliveries } = collections;
  const ids = chosen.map(({ id }) => id);
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

/**
 * The lease token of a claim: the lane before the stored token, so that a report names the lane whose streak it moves
 * without reading its delivery.
 */
export function leaseTokenOf(prefix: string, stored: string): string {
  return `${prefix}:${stored}`;
}

export function readLeaseToken(leaseToken: string): { readonly prefix: string; readonly stored: string } {
  const [prefix = '', ...stored] = leaseToken.split(':');
  return { prefix, stored: stored.join(':') };
}
