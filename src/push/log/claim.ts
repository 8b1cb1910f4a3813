import { world } from '../../base/world.ts';
import { change, type Tables } from '../../tables/tables.ts';
import type { ClaimedDelivery } from '../queue/delivery.ts';
import type { Claim, ClaimOptions } from '../queue/delivery-queue.ts';
import { keysOf } from './changes.ts';
import { ALL_COLUMNS, claimedOf, DELIVERIES } from './tables.ts';
import { endWithdrawn } from './withdrawals.ts';

/** Rounds of one claim. Each further one means that another dispatcher has claimed something that was chosen here. */
const MAX_ROUNDS = 16;
/** If no more than this many deliveries are due, all of them are looked at; otherwise lane by lane. */
const MAX_LOOKED_AT = 200;
/** The most rows of each kind that one claim corrects. */
const MAX_CORRECTED = 100;
/** The columns of a claimed delivery. */
const COLUMNS = ALL_COLUMNS.filter((name) => name !== 'attempts');

/** Returns a unique token for a claim. It names the holder for people who read the log. */
export function newLeaseToken(holder: string): string {
  return `${holder}/${world.randomUUID()}`;
}

interface Wanted {
  /** Nothing is due before this time. */
  readonly fromMs: number;
  readonly nowMs: number;
  readonly limit: number;
  readonly freeSlots: (prefix: string) => number;
}

/** Chooses deliveries by the indexes alone, and leases those that did not change since. Of several dispatchers one wins each delivery. */
export async function claimDue(tables: Tables, options: ClaimOptions, fromMs: number): Promise<Claim> {
  const { nowMs, leaseMs, holder, limit, laneCapacity } = options;
  const token = newLeaseToken(holder);
  const taken = new Map<string, number>();
  const freeSlots = (prefix: string): number => laneCapacity(prefix) - (taken.get(prefix) ?? 0);
  const claimed: ClaimedDelivery[] = [];
  let heads: readonly LaneHead[] | undefined;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const wanted = { fromMs, nowMs, limit: limit - claimed.length, freeSlots };
    const { keys, ...looked } = await choose(tables, wanted);
    heads = looked.heads;
    if (keys.length === 0) break;
    const rows = await tables.get(DELIVERIES, keys, COLUMNS);
    const due = rows.filter(({ due_at }) => due_at !== null && due_at <= nowMs);
    const lease = { lease: token, claimed: 1, due_at: nowMs + leaseMs };
    const done = await tables.write(
      due.map(({ owed, version }) =>
        change(DELIVERIES, owed, { ...lease, version: version + 1 }, { as: { version } }),
      ),
    );
    const won = due.filter((_, n) => done[n]);
    const ids = won.map(({ transaction_id }) => transaction_id);
    const withdrawn = await endWithdrawn(tables, ids);
    for (const row of won) {
      if (withdrawn.has(row.transaction_id)) continue; // the process that stored it died before it looked for the mark
      taken.set(row.prefix, (taken.get(row.prefix) ?? 0) + 1);
      claimed.push(claimedOf(row, token));
    }
    if (won.length === keys.length) break;
  }
  if (claimed.length > 0) return { claimed, nextAtMs: nowMs };
  const later = (heads ?? (await laneHeads(tables))).flatMap(({ dueAtMs }) =>
    dueAtMs > nowMs ? [dueAtMs] : [],
  );
  return { claimed, nextAtMs: later.length === 0 ? undefined : later.reduce((a, b) => Math.min(a, b)) };
}

interface Chosen {
  readonly keys: readonly string[];
  /** The heads of all lanes, if they were read. */
  readonly heads?: readonly LaneHead[];
}

/** Chooses from the lanes that wait longest first, as many of each as it has free slots. */
async function choose(tables: Tables, wanted: Wanted): Promise<Chosen> {
  const { fromMs, nowMs, limit, freeSlots } = wanted;
  if (limit <= 0) return { keys: [] };
  const due = await tables.find(DELIVERIES, {
    ...{ index: 'due', equals: { claimed: [0, 1] }, range: { from: fromMs, to: nowMs } },
    ...{ limit: MAX_LOOKED_AT, columns: ['owed', 'prefix'] },
  });
  if (due.length === MAX_LOOKED_AT) return chooseByLane(tables, wanted);
  const chosen: string[] = [];
  for (const [prefix, lane] of Map.groupBy(due, (row) => row.prefix)) {
    const most = Math.max(0, Math.min(freeSlots(prefix), limit - chosen.length));
    for (const { owed } of lane.slice(0, most)) chosen.push(owed);
    if (chosen.length === limit) break;
  }
  return { keys: chosen };
}

/** Like `choose`, for many: reads one index entry of each lane, and then more of the lanes with free slots. */
async function chooseByLane(tables: Tables, { nowMs, limit, freeSlots }: Wanted): Promise<Chosen> {
  const heads = await laneHeads(tables);
  const waiting = heads.filter(({ dueAtMs }) => dueAtMs <= nowMs).sort((a, b) => a.dueAtMs - b.dueAtMs);
  const lanes = waiting.map((head) => ({ ...head, most: Math.min(limit, freeSlots(head.prefix)) }));
  const free = lanes.filter(({ most }) => most > 0).slice(0, limit);
  const due = await Promise.all(
    free.map(async ({ prefix, owed, most }) => {
      if (most === 1) return [owed];
      const ofLane = { index: 'due_in_lane', equals: { prefix }, range: { to: nowMs } } as const;
      return keysOf(await tables.find(DELIVERIES, { ...ofLane, limit: most, columns: ['owed'] }));
    }),
  );
  return { keys: due.flat().slice(0, limit), heads };
}

interface LaneHead {
  readonly prefix: string;
  readonly owed: string;
  readonly dueAtMs: number;
}

/** The delivery that is due first, of each lane with something pending or of these lanes. */
export async function laneHeads(tables: Tables, values?: readonly string[]): Promise<LaneHead[]> {
  const heads = await tables.firsts(DELIVERIES, {
    ...{ index: 'due_in_lane', of: 'prefix' },
    ...(values && { values }),
  });
  return heads.map(({ prefix = '', owed = '', due_at }) => ({ prefix, owed, dueAtMs: due_at ?? 0 }));
}

/** When the first of all deliveries is due, or its lease ends. Nothing is due before `fromMs`. */
export async function firstDue(tables: Tables, fromMs = 0): Promise<number | undefined> {
  const due = { index: 'due', equals: { claimed: [0, 1] }, range: { from: fromMs }, limit: 1 } as const;
  const [first] = await tables.find(DELIVERIES, { ...due, columns: ['due_at'] });
  return first?.due_at ?? undefined;
}

type Limits = Pick<ClaimOptions, 'nowMs' | 'leaseMs' | 'longestWaitMs' | 'laneCapacity'>;

/**
 * Corrects the times that are further away than they can be, which a clock that was ahead has written. Such a delivery is
 * due now. Such a claim ends one lease from now, because the process that made it may be in the middle of its attempt;
 * only the process that works on the lane does this. While clocks are right, both reads find nothing. Returns the
 * new times.
 */
export async function correctTimes(tables: Tables, limits: Limits): Promise<number[]> {
  const { nowMs, leaseMs, longestWaitMs, laneCapacity } = limits;
  const later = (claimed: number, afterMs: number) =>
    tables.find(DELIVERIES, {
      ...{ index: 'due', equals: { claimed }, range: { from: afterMs + 1 } },
      ...{ limit: MAX_CORRECTED, columns: ['owed', 'prefix', 'version'] },
    });
  const [others, claims] = await Promise.all([later(0, nowMs + longestWaitMs), later(1, nowMs + leaseMs)]);
  const own = claims.filter(({ prefix }) => laneCapacity(prefix) > 0);
  const corrected = [
    ...others.map((row) => ({ ...row, due_at: nowMs })),
    ...own.map((row) => ({ ...row, due_at: nowMs + leaseMs })),
  ];
  if (corrected.length === 0) return [];
  await tables.write(
    corrected.map(({ owed, version, due_at }) =>
      change(DELIVERIES, owed, { due_at, version: version + 1 }, { as: { version } }),
    ),
  );
  return corrected.map(({ due_at }) => due_at);
}
