import type { ClientSession, Collection } from 'mongodb';
import type { WebhookHealth } from '../../../push/queue/delivery-queue.ts';
import { FailureStreaks, healthy } from '../../../push/queue/failure-streak.ts';
import type { Transition } from '../../../push/queue/next-state.ts';
import { insertMissing, type LaneDocument } from './collections.ts';
import { toHealth, toStreakFields } from './documents.ts';

type LaneCollection = Collection<LaneDocument>;

export async function readHealth(lanes: LaneCollection, prefix: string): Promise<WebhookHealth> {
  const lane = await lanes.findOne({ _id: prefix });
  return lane === null ? healthy() : toHealth(lane);
}

export async function resetHealth(lanes: LaneCollection, prefix: string): Promise<void> {
  await lanes.updateOne({ _id: prefix }, { $set: toStreakFields(healthy()) });
}

/** Ends the time of these lanes' failure streaks, not the count. */
export async function endStreaksInTime(lanes: LaneCollection, prefixes: readonly string[]): Promise<void> {
  const timed = { _id: { $in: prefixes }, failing_since: { $ne: null } };
  await lanes.updateMany(timed, { $set: { failing_since: null } });
}

export async function readLanes(
  lanes: LaneCollection,
  prefixes: readonly string[],
  session?: ClientSession,
): Promise<ReadonlyMap<string, LaneDocument>> {
  const within = session === undefined ? {} : { session };
  const found = await lanes.find({ _id: { $in: prefixes } }, within).toArray();
  return new Map(found.map((lane) => [lane._id, lane]));
}

/** Makes the lanes that are missing, so that every change of a streak is an update. */
export async function ensureLanes(lanes: LaneCollection, prefixes: readonly string[]): Promise<void> {
  await insertMissing(
    lanes,
    prefixes.map((prefix) => ({ _id: prefix, ...toStreakFields(healthy()) })),
  );
}

/**
 * Moves the streaks by transitions that took place, within the transaction of the session, and returns those that
 * changed. Every lane must exist. Where another process changed a lane meanwhile, the transaction fails and its
 * owner repeats it.
 */
export async function moveStreaks(
  lanes: LaneCollection,
  moves: readonly { readonly prefix: string; readonly transition: Transition }[],
  session: ClientSession,
): Promise<ReadonlyMap<string, WebhookHealth>> {
  const before = await readLanes(lanes, [...new Set(moves.map(({ prefix }) => prefix))], session);
  const streaks = new FailureStreaks((prefix) => {
    const lane = before.get(prefix);
    return lane === undefined ? healthy() : toHealth(lane);
  });
  for (const { prefix, transition } of moves) streaks.apply(prefix, transition);
  for (const [prefix, health] of streaks.changed) {
    await lanes.updateOne({ _id: prefix }, { $set: toStreakFields(health) }, { session });
  }
  return streaks.changed;
}
