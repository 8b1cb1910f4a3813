import type { Clock } from '../../base/clock.ts';
import { world } from '../../base/world.ts';
import { put, type Tables } from '../../tables/tables.ts';
import { MAX_RETRY_AFTER_MS, retryAfterMs } from '../pace/retry-after.ts';
import type { Delivery, OwedKey } from '../queue/delivery.ts';
import type { Backlog, DeliveryQueue, DueLane, DueLanes } from '../queue/delivery-queue.ts';
import { healthOf, NO_STREAK } from '../queue/failure-streak.ts';
import { endOf } from '../queue/next-state.ts';
import { laneHeads } from './claim.ts';
import { streakOf } from './streaks.ts';
import { ALL_COLUMNS, attemptsOf, DELIVERIES, deliveryOf, LANES, LOG, owedOf } from './tables.ts';

/** The deliveries of a lane that are searched for a receiver's wish to wait, and those whose attempts are read. */
const RETRIES = { searched: 200, read: 20 };
/** A retry comes up to this much later than its receiver has asked, as a retry's wait varies. */
const MAX_RETRY_WAIT_MS = 1.1 * MAX_RETRY_AFTER_MS;

/** Implements `DeliveryQueue.logId`. A log without a name gets one, the same for all processes that ask at once. */
export async function logName(tables: Tables, clock: Clock): ReturnType<DeliveryQueue['logId']> {
  for (;;) {
    const [found] = await tables.get(LOG, ['log']);
    if (found !== undefined) return { id: found.id, startedAtMs: found.started_at };
    await tables.write([
      put(LOG, { only: 'log', id: world.randomUUID(), started_at: clock.now() }, 'missing'),
    ]);
  }
}

export async function findDelivery(tables: Tables, id: string): Promise<Delivery | undefined> {
  const parts = await tables.firsts(DELIVERIES, { index: 'by_id', of: 'id_part' });
  const id_part = parts.flatMap((first) => first.id_part ?? []);
  const of = { index: 'by_id', equals: { id_part, id }, limit: 1 } as const;
  const [row] = await tables.find(DELIVERIES, { ...of, columns: ALL_COLUMNS });
  return row && deliveryOf(row);
}

export async function getDeliveries(tables: Tables, deliveries: readonly OwedKey[]): Promise<Delivery[]> {
  return (await tables.get(DELIVERIES, deliveries.map(owedOf), ALL_COLUMNS)).map(deliveryOf);
}

/** Implements `DeliveryQueue.transactionsAfter`. It reads every row of the index: most transactions have few deliveries, so a look for each would take longer. */
export async function transactionsAfter(tables: Tables, after: number, limit: number): Promise<number[]> {
  const ids: number[] = [];
  for (let from = after + 1; ids.length < limit; from = (ids.at(-1) ?? 0) + 1) {
    const asked = limit - ids.length;
    const of = { index: 'by_transaction', range: { from }, limit: asked } as const;
    const rows = await tables.find(DELIVERIES, { ...of, columns: ['transaction_id'] });
    for (const { transaction_id: id } of rows) if (id !== ids.at(-1)) ids.push(id);
    if (rows.length < asked) break;
  }
  return ids;
}

export async function healthOfLane(tables: Tables, prefix: string) {
  const [row] = await tables.get(LANES, [prefix]);
  return healthOf(row === undefined ? NO_STREAK : streakOf(row));
}

export async function failingLanes(tables: Tables, limit: number) {
  const rows = await tables.find(LANES, { index: 'failing', descending: true, limit });
  return rows.map((row) => ({ prefix: row.prefix, ...healthOf(streakOf(row)) }));
}

/** Implements `DeliveryQueue.dueLanes`. The first of a lane's rows by due time is its head. */
export async function dueLanes(
  tables: Tables,
  { nowMs, limit, after, prefixes = [] }: Parameters<DeliveryQueue['dueLanes']>[0],
): Promise<DueLanes> {
  const due = await tables.find(DELIVERIES, {
    index: 'due',
    equals: { claimed: [0, 1] },
    range: { to: nowMs },
    limit,
    columns: ['prefix', 'transaction_id', 'due_at'],
  });
  const heads = new Map<string, DueLane>();
  for (const { prefix, transaction_id: transactionId, due_at } of due)
    if (!heads.has(prefix)) heads.set(prefix, { prefix, transactionId, dueAtMs: due_at ?? 0 });
  if (due.length < limit) return { lanes: [...heads.values()], isAll: true, next: undefined };
  const others = await tables.find(LANES, {
    index: 'of_account',
    limit,
    columns: ['account_id', 'prefix'],
    after: after && { account_id: after.accountId, prefix: after.prefix },
  });
  const asked = new Set(
    [...prefixes, ...others.map(({ prefix }) => prefix)].filter((each) => !heads.has(each)),
  );
  for (const { prefix, owed, dueAtMs } of await laneHeads(tables, [...asked]))
    if (dueAtMs <= nowMs) heads.set(prefix, { prefix, transactionId: Number.parseInt(owed, 10), dueAtMs });
  const last = others.length < limit ? undefined : others.at(-1);
  const next = last && { accountId: last.account_id, prefix: last.prefix };
  return { lanes: [...heads.values()], isAll: false, next };
}

/** Implements `DeliveryQueue.askedToWaitUntil`. A retry is due no sooner than its receiver has asked, so the latest come first. */
export async function askedToWaitUntil(
  tables: Tables,
  prefix: string,
  nowMs: number,
): Promise<number | undefined> {
  const later = await tables.find(DELIVERIES, {
    index: 'due_in_lane',
    equals: { prefix },
    descending: true,
    range: { from: nowMs + 1, to: nowMs + MAX_RETRY_WAIT_MS },
    limit: RETRIES.searched,
    columns: ['owed', 'attempts_in_cycle'],
  });
  const retries = later.filter((row) => row.attempts_in_cycle > 0).slice(0, RETRIES.read);
  const rows = await tables.get(
    DELIVERIES,
    retries.map(({ owed }) => owed),
    ['attempts'],
  );
  let untilMs: number | undefined;
  for (const row of rows) {
    const last = attemptsOf(row).at(-1);
    const askedMs = last && retryAfterMs(last.outcome, endOf(last));
    if (last !== undefined && askedMs != null) untilMs = Math.max(untilMs ?? 0, endOf(last) + askedMs);
  }
  return untilMs !== undefined && untilMs > nowMs ? untilMs : undefined;
}

/** Implements `DeliveryQueue.countIn`. */
export async function countIn(
  tables: Tables,
  prefixes: readonly string[],
  { nowMs, limit }: Parameters<DeliveryQueue['countIn']>[1],
): ReturnType<DeliveryQueue['countIn']> {
  const ofLanes = { index: 'due_in_lane', equals: { prefix: prefixes } } as const;
  const [pending, waiting] = await Promise.all([
    tables.count(DELIVERIES, ofLanes, limit),
    tables.count(DELIVERIES, { ...ofLanes, range: { to: nowMs } }, limit),
  ]);
  return { pending, waiting };
}

export async function backlog(
  tables: Tables,
  { nowMs, limit, prefix }: Parameters<DeliveryQueue['backlog']>[0],
): Promise<Backlog> {
  const count = (selection: Parameters<typeof tables.count<typeof DELIVERIES>>[1]) =>
    tables.count(DELIVERIES, selection, limit);
  const [due, later] = [{ to: nowMs }, { from: nowMs + 1 }];
  if (prefix === undefined) {
    const [pending, underWay, waiting, failing, [first]] = await Promise.all([
      count({ index: 'due' }),
      count({ index: 'due', equals: { claimed: 1 }, range: later }),
      count({ index: 'due', equals: { claimed: [0, 1] }, range: due }),
      tables.count(LANES, { index: 'failing' }, limit),
      tables.find(DELIVERIES, { index: 'due', equals: { claimed: [0, 1] }, limit: 1, columns: ['due_at'] }),
    ]);
    const nextDueAtMs = first?.due_at ?? undefined;
    return { pending, underWay, waiting, failingLanes: failing, nextDueAtMs };
  }
  const ofLane = { index: 'due_in_lane', equals: { prefix } } as const;
  const [pending, waiting, first, health, [head]] = await Promise.all([
    count(ofLane),
    count({ ...ofLane, range: due }),
    // Leases end before retries are due, so the claimed ones are among the first.
    tables.find(DELIVERIES, { ...ofLane, range: later, limit, columns: ['claimed'] }),
    healthOfLane(tables, prefix),
    laneHeads(tables, [prefix]),
  ]);
  const underWay = first.filter(({ claimed }) => claimed === 1).length;
  const failing = health.failedInARow > 0 ? 1 : 0;
  return { pending, underWay, waiting, failingLanes: failing, nextDueAtMs: head?.dueAtMs };
}
