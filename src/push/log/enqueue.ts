import { put, type Tables } from '../../tables/tables.ts';
import type { ClaimedDelivery, NewDelivery } from '../queue/delivery.ts';
import type { LeaseTerms } from '../queue/delivery-queue.ts';
import { newProgress } from '../queue/next-state.ts';
import { newLeaseToken } from './claim.ts';
import { newLane } from './streaks.ts';
import { DELIVERIES, newRow, owedOf } from './tables.ts';
import { endWithdrawn } from './withdrawals.ts';

/** The names that this process remembers between batches. */
export interface Known {
  /** Lanes that have a row. */
  readonly lanes: Set<string>;
  /** Returns the part of the index of ids for this many deliveries. */
  readonly partFor: (deliveries: number) => number;
}

/** New deliveries of a batch. Deliveries that were stored before are in neither. */
interface StoredNew {
  readonly claimed: readonly ClaimedDelivery[];
  /** Stored as pending and left for `lease`, some because a delivery that was stored before took the place. */
  readonly unclaimed: number;
}

/**
 * Stores the new deliveries in one write, leased as far as they are chosen. Then it looks for withdrawals of all of them, so that
 * storing a batch again completes an interrupted call.
 */
export async function storeNew(
  tables: Tables,
  deliveries: readonly NewDelivery[],
  { terms, known: { lanes, partFor } }: { readonly terms: LeaseTerms | undefined; readonly known: Known },
): Promise<StoredNew> {
  const first = new Map(deliveries.toReversed().map((delivery) => [owedOf(delivery), delivery]));
  const given = [...first.values()].reverse(); // without repetitions, of which the first counts
  const token = newLeaseToken(terms?.holder ?? '');
  const lease = { token, untilMs: terms === undefined ? 0 : terms.nowMs + terms.leaseMs };
  const ofLanes = Map.groupBy(given, ({ prefix }) => prefix);
  const leased = new Set([...ofLanes].flatMap(([prefix, of]) => of.slice(0, terms?.chosen.get(prefix) ?? 0)));
  const part = partFor(given.length);
  const rows = given.map((delivery) => {
    const progress = newProgress(delivery, leased.has(delivery) ? lease : undefined);
    return put(DELIVERIES, newRow(delivery, progress, part), 'missing');
  });
  const accounts = new Map(given.map(({ prefix, accountId }) => [prefix, accountId]));
  const unknown = [...accounts].filter(([prefix]) => !lanes.has(prefix));
  const done = await tables.write([...unknown.map((lane) => newLane(...lane)), ...rows]);
  for (const [prefix] of unknown) lanes.add(prefix);
  const ids = given.map(({ transactionId }) => transactionId);
  const withdrawn = await endWithdrawn(tables, ids);
  const fresh = given.filter(
    ({ transactionId }, n) => done[unknown.length + n] && !withdrawn.has(transactionId),
  );
  const claimed = fresh.filter((delivery) => leased.has(delivery));
  return {
    claimed: claimed.map((delivery) => ({ ...delivery, cycle: 1, attemptNumber: 1, leaseToken: token })),
    unclaimed: fresh.length - claimed.length,
  };
}
