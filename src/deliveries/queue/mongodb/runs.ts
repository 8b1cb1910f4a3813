import type { ClientSession, Collection } from 'mongodb';
import type { WebhookHealth } from '../delivery-queue.ts';
import { HealthRuns, healthy } from '../health-run.ts';
import { insertMissing, type LaneDocument } from './collections.ts';
import { toHealth, toRunFields } from './documents.ts';
import { moveRuns, type PendingReport } from './report.ts';

export type LaneCollection = Collection<LaneDocument>;

export async function readHealth(lanes: LaneCollection, prefix: string): Promise<WebhookHealth> {
  const lane = await lanes.findOne({ _id: prefix });
  return lane === null ? healthy() : toHealth(lane);
}

export async function resetHealth(lanes: LaneCollection, prefix: string): Promise<void> {
  await lanes.updateOne({ _id: prefix }, { $set: toRunFields(healthy()) });
}

/** Ends the time of these lanes' runs, not the count. */
export async function endRunsInTime(lanes: LaneCollection, prefixes: readonly string[]): Promise<void> {
  const running = { _id: { $in: prefixes }, failing_since: { $ne: null } };
  await lanes.updateMany(running, { $set: { failing_since: null } });
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

/** Makes the lanes that are missing, so that every change of a run is an update. */
export async function ensureLanes(lanes: LaneCollection, prefixes: readonly string[]): Promise<void> {
  await insertMissing(
    lanes,
    prefixes.map((prefix) => ({ _id: prefix, ...toRunFields(healthy()) })),
  );
}

/**
 * Moves the runs by reports that counted, within the transaction of the session, and returns those that changed.
 * Every lane must exist. Where another process changed a lane meanwhile, the transaction fails and its owner
 * repeats it.
 */
export async function applyRuns(
  lanes: LaneCollection,
  counted: readonly PendingReport[],
  session: ClientSession,
): Promise<ReadonlyMap<string, WebhookHealth>> {
  const before = await readLanes(lanes, [...new Set(counted.map(({ prefix }) => prefix))], session);
  const runs = new HealthRuns((prefix) => {
    const lane = before.get(prefix);
    return lane === undefined ? healthy() : toHealth(lane);
  });
  moveRuns(runs, counted);
  for (const [prefix, health] of runs.changed) {
    await lanes.updateOne({ _id: prefix }, { $set: toRunFields(health) }, { session });
  }
  return runs.changed;
}
