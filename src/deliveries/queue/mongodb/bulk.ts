import type { DeliveryCollections } from './collections.ts';
import { endRunsInTime } from './runs.ts';
import { NO_MORE_DUE, OPEN } from './withdrawals.ts';

/** Deliveries of one round of a bulk change. */
export const BULK = 500;

/** What one round of a resume found and did. */
export interface Resumed {
  readonly found: number;
  readonly resumed: number;
  /** Where the next round goes on. */
  readonly after: string;
}

/**
 * Makes the next held deliveries of an account due, by id, so that what is held again meanwhile is not resumed
 * twice. The lanes' runs end in time first: an interruption leaves no run that a hold has made too old.
 */
export async function resumeSome(
  { deliveries, lanes }: DeliveryCollections,
  { accountId, after, nowMs }: { readonly accountId: number; readonly after: string; readonly nowMs: number },
): Promise<Resumed> {
  const held = await deliveries
    .find(
      { state: 'held', account_id: accountId, _id: { $gt: after } },
      { projection: { prefix: 1 }, hint: 'held' },
    )
    .sort({ _id: 1 })
    .limit(BULK)
    .toArray();
  const ids = held.map(({ _id }) => _id);
  const last = ids.at(-1);
  if (last === undefined) return { found: 0, resumed: 0, after };
  await endRunsInTime(lanes, [...new Set(held.map(({ prefix }) => prefix))]);
  const isHeld = { _id: { $in: ids }, state: 'held' } as const;
  const due = { $set: { state: 'pending', due_at: nowMs } } as const;
  const { modifiedCount } = await deliveries.updateMany(isHeld, due, { hint: '_id_' });
  return { found: ids.length, resumed: modifiedCount, after: last };
}

/** Ends the next deliveries of a lane that wait; says how many it found and ended. */
export async function endSome(
  { deliveries }: DeliveryCollections,
  { prefix, reason, nowMs }: { readonly prefix: string; readonly reason: string; readonly nowMs: number },
): Promise<{ readonly found: number; readonly ended: number }> {
  const idOnly = { projection: { _id: 1 }, limit: BULK };
  const open = await deliveries
    .find({ state: 'pending', prefix }, { ...idOnly, hint: 'due_in_lane' })
    .toArray();
  if (open.length < BULK) {
    const held = deliveries.find({ state: 'held', prefix }, { ...idOnly, hint: 'held_in_lane' });
    for await (const delivery of held) open.push(delivery);
  }
  if (open.length === 0) return { found: 0, ended: 0 };
  const stillOpen = { _id: { $in: open.map(({ _id }) => _id) }, state: { $in: OPEN } };
  const end = { $set: { state: 'failed', reason, ended_at: nowMs }, $unset: NO_MORE_DUE } as const;
  const { modifiedCount } = await deliveries.updateMany(stillOpen, end, { hint: '_id_' });
  return { found: open.length, ended: modifiedCount };
}

/** Removes what ended first before a time; says how many. */
export async function purgeSome(
  { deliveries }: DeliveryCollections,
  { endedBeforeMs, limit }: { readonly endedBeforeMs: number; readonly limit: number },
): Promise<number> {
  if (limit <= 0) return 0; // none, where the engine would take it for no limit
  const old = await deliveries
    .find({ ended_at: { $lt: endedBeforeMs } }, { projection: { _id: 1 }, hint: 'ended' })
    .sort({ ended_at: 1 })
    .limit(limit)
    .toArray();
  if (old.length === 0) return 0;
  const stillOld = { _id: { $in: old.map(({ _id }) => _id) }, ended_at: { $lt: endedBeforeMs } };
  return (await deliveries.deleteMany(stillOld, { hint: '_id_' })).deletedCount;
}
