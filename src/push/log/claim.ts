import { world } from '../../base/world.ts';
import { change, type Tables } from '../../tables/tables.ts';
import type { ClaimedDelivery } from '../queue/delivery.ts';
import type { DueDelivery, HeadsOptions, LaneHead, LeaseTerms } from '../queue/delivery-queue.ts';
import { ALL_COLUMNS, claimedOf, DELIVERIES, owedOf } from './tables.ts';
import { endWithdrawn } from './withdrawals.ts';

/** If fewer than this many deliveries are due, all of them are read; otherwise also the lanes that have others. */
const MAX_READ = 200;
/** The most rows with a wrong time of each kind that are read at once. */
const MAX_CORRECTED = 100;
const DUE_COLUMNS = ['transaction_id', 'prefix', 'due_at', 'version'] as const;
/** The columns of a claimed delivery, and those that prove its lease. */
const CLAIMED_COLUMNS = ALL_COLUMNS.filter((name) => name !== 'attempts');

/** Returns a unique token for a lease. It names the holder for people who read the log. */
export function newLeaseToken(holder: string): string {
  return `${holder}/${world.randomUUID()}`;
}

interface LookedAt {
  readonly lanes: readonly LaneHead[];
  readonly nextAtMs: number | undefined;
  /** The first of all due times from the beginning of the look on, past or to come. */
  readonly firstAtMs: number | undefined;
}

/** Implements `DeliveryQueue.heads`. Nothing is due before `fromMs`. While clocks are right, the last two reads find nothing. */
export async function readHeads(
  tables: Tables,
  { nowMs, leaseMs, longestWaitMs }: HeadsOptions,
  fromMs: number,
): Promise<LookedAt> {
  const find = (claimed: readonly number[], limit: number, range: { from: number; to?: number }) =>
    tables.find(DELIVERIES, { index: 'due', equals: { claimed }, range, limit, columns: DUE_COLUMNS });
  const [due, [later], putOff, overlong] = await Promise.all([
    fromMs > nowMs ? [] : find([0, 1], MAX_READ, { from: fromMs, to: nowMs }),
    find([0, 1], 1, { from: Math.max(fromMs, nowMs + 1) }),
    find([0], MAX_CORRECTED, { from: nowMs + longestWaitMs + 1 }),
    find([1], MAX_CORRECTED, { from: nowMs + leaseMs + 1 }),
  ]);
  const isAll = due.length < MAX_READ;
  const dueOf = Map.groupBy([...due, ...putOff], ({ prefix }) => prefix);
  const overlongOf = Map.groupBy(overlong, ({ prefix }) => prefix);
  const others = isAll ? [] : (await laneHeads(tables)).filter(({ dueAtMs }) => dueAtMs <= nowMs);
  const prefixes = new Set([
    ...dueOf.keys(),
    ...others.sort((a, b) => a.dueAtMs - b.dueAtMs).map(({ prefix }) => prefix),
    ...overlongOf.keys(),
  ]);
  const lanes = [...prefixes].map((prefix) => {
    const of = (dueOf.get(prefix) ?? []).map(dueDelivery);
    const count = isAll ? Math.max(1, of.length) : Infinity;
    return { prefix, count, due: of, overlong: (overlongOf.get(prefix) ?? []).map(dueDelivery) };
  });
  const nextAtMs = later?.due_at ?? undefined;
  return { lanes, nextAtMs, firstAtMs: due[0]?.due_at ?? nextAtMs };
}

/**
 * Implements `DeliveryQueue.lease`. Of several processes one wins each delivery, since each writes it only as it was read. The
 * record is read under the lease, and a delivery that was ended or withdrawn meanwhile is not handed out.
 */
export async function leaseChosen(
  tables: Tables,
  lanes: readonly LaneHead[],
  { nowMs, leaseMs, holder, chosen }: LeaseTerms,
): Promise<ClaimedDelivery[]> {
  const mostOf = ({ prefix }: LaneHead): number => chosen.get(prefix) ?? 0;
  const served = lanes.filter((lane) => mostOf(lane) > 0);
  const due = (await Promise.all(served.map((lane) => oldest(tables, lane, mostOf(lane), nowMs)))).flat();
  const overlong = served.flatMap((lane) => lane.overlong);
  const token = newLeaseToken(holder);
  const untilMs = nowMs + leaseMs;
  const set = (delivery: DueDelivery, columns: { lease?: string; claimed?: number }) => {
    const { version } = delivery;
    const next = { ...columns, due_at: untilMs, version: version + 1 };
    return change(DELIVERIES, owedOf(delivery), next, { as: { version } });
  };
  const done = await tables.write([
    ...due.map((delivery) => set(delivery, { lease: token, claimed: 1 })),
    ...overlong.map((delivery) => set(delivery, {})),
  ]);
  const won = due.filter((_, n) => done[n]);
  const [rows, withdrawn] = await Promise.all([
    tables.get(DELIVERIES, won.map(owedOf), CLAIMED_COLUMNS),
    // The process that stored one may have died before it looked for the mark.
    endWithdrawn(
      tables,
      won.map(({ transactionId }) => transactionId),
    ),
  ]);
  return rows
    .filter(({ lease, transaction_id }) => lease === token && !withdrawn.has(transaction_id))
    .map((row) => claimedOf(row, token));
}

/** The oldest due deliveries of a lane. They are read now if more were chosen than `heads` has read. */
async function oldest(
  tables: Tables,
  { prefix, count, due }: LaneHead,
  most: number,
  nowMs: number,
): Promise<readonly DueDelivery[]> {
  if (most <= due.length || Number.isFinite(count)) return due.slice(0, most);
  const ofLane = { index: 'due_in_lane', equals: { prefix }, range: { to: nowMs } } as const;
  const rows = await tables.find(DELIVERIES, { ...ofLane, limit: most, columns: DUE_COLUMNS });
  return rows.map(dueDelivery);
}

function dueDelivery(row: { readonly transaction_id: number; prefix: string; version: number }): DueDelivery {
  return { transactionId: row.transaction_id, prefix: row.prefix, version: row.version };
}

/** The delivery that is due first, of each lane with something pending or of these lanes. */
export async function laneHeads(tables: Tables, values?: readonly string[]) {
  const heads = await tables.firsts(DELIVERIES, {
    index: 'due_in_lane',
    of: 'prefix',
    ...(values && { values }),
  });
  return heads.map(({ prefix = '', owed = '', due_at }) => ({ prefix, owed, dueAtMs: due_at ?? 0 }));
}
