import type { Clock } from '../../base/clock.ts';
import { world } from '../../base/world.ts';
import { put, type Tables } from '../../tables/tables.ts';
import type { Delivery, OwedKey } from '../queue/delivery.ts';
import type { Backlog, DeliveryQueue } from '../queue/delivery-queue.ts';
import { healthOf, NO_STREAK } from '../queue/failure-streak.ts';
import { firstDue, laneHeads } from './claim.ts';
import { streakOf } from './streaks.ts';
import { ALL_COLUMNS, DELIVERIES, deliveryOf, LANES, LOG, owedOf } from './tables.ts';

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

export async function heldAccounts(tables: Tables): Promise<number[]> {
  const held = { index: 'held', of: 'held_account' } as const;
  return (await tables.firsts(DELIVERIES, held)).flatMap(({ held_account }) => held_account ?? []);
}

export async function backlog(
  tables: Tables,
  { nowMs, limit, prefix }: Parameters<DeliveryQueue['backlog']>[0],
): Promise<Backlog> {
  const count = (selection: Parameters<typeof tables.count<typeof DELIVERIES>>[1]) =>
    tables.count(DELIVERIES, selection, limit);
  const [due, later] = [{ to: nowMs }, { from: nowMs + 1 }];
  if (prefix === undefined) {
    const [pending, underWay, waiting, held, failing, nextDueAtMs] = await Promise.all([
      count({ index: 'due' }),
      count({ index: 'due', equals: { claimed: 1 }, range: later }),
      count({ index: 'due', equals: { claimed: [0, 1] }, range: due }),
      count({ index: 'held' }),
      tables.count(LANES, { index: 'failing' }, limit),
      firstDue(tables),
    ]);
    return { pending, underWay, waiting, held, failingLanes: failing, nextDueAtMs };
  }
  const ofLane = { index: 'due_in_lane', equals: { prefix } } as const;
  const [pending, waiting, held, first, health, [head]] = await Promise.all([
    count(ofLane),
    count({ ...ofLane, range: due }),
    count({ index: 'held_in_lane', equals: { prefix } }),
    // Leases end before retries are due, so the claimed ones are among the first.
    tables.find(DELIVERIES, { ...ofLane, range: later, limit, columns: ['claimed'] }),
    healthOfLane(tables, prefix),
    laneHeads(tables, [prefix]),
  ]);
  const underWay = first.filter(({ claimed }) => claimed === 1).length;
  const failing = health.failedInARow > 0 ? 1 : 0;
  return { pending, underWay, waiting, held, failingLanes: failing, nextDueAtMs: head?.dueAtMs };
}
