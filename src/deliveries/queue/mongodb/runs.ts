import type { ClientSession, Collection } from 'mongodb';
import type { WebhookHealth } from '../delivery-queue.ts';
import { HealthRuns, healthy } from '../health-run.ts';
import { insertMissing, type LaneDocument } from './collections.ts';
import { toHealth, toRunFields } from './documents.ts';
import { moveRuns, type PendingReport } from './report.ts';

/** Another process changed a lane's run meanwhile: it is read and moved again. */
const MAX_TRIES = 100;

export type LaneCollection = Collection<LaneDocument>;

export async function readHealth(lanes: LaneCollection, prefix: string): Promise<WebhookHealth> {
  const lane = await lanes.findOne({ _id: prefix });
  return lane === null ? healthy() : toHealth(lane);
}

export async function resetHealth(lanes: LaneCollection, prefix: string): Promise<void> {
  await lanes.updateOne({ _id: prefix }, { $set: toRunFields(healthy()), $inc: { v: 1 } });
}

/** Ends the time of these lanes' runs, not the count. */
export async function endRunsInTime(lanes: LaneCollection, prefixes: readonly string[]): Promise<void> {
  const running = { _id: { $in: prefixes }, failing_since: { $ne: null } };
  await lanes.updateMany(running, { $set: { failing_since: null }, $inc: { v: 1 } });
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

/** Makes the lanes that are missing, so that every change of a run is a guarded update. */
export async function ensureLanes(lanes: LaneCollection, prefixes: readonly string[]): Promise<void> {
  await insertMissing(
    lanes,
    prefixes.map((prefix) => ({ _id: prefix, ...toRunFields(healthy()), v: 0 })),
  );
}

/**
 * Moves the runs by reports that counted, each lane read once and written once, and returns those that changed.
 * Every lane must be there. What another process changed in between is not overwritten: such a lane is read and
 * moved again, or, in a transaction, the transaction fails and is made again by its owner.
 */
export async function applyRuns(
  lanes: LaneCollection,
  counted: readonly PendingReport[],
  session?: ClientSession,
): Promise<Map<string, WebhookHealth>> {
  const within = session === undefined ? {} : { session };
  const changed = new Map<string, WebhookHealth>();
  let left = counted;
  for (let tries = 0; left.length > 0; tries++) {
    if (tries === MAX_TRIES)
      throw new Error('the runs of failures changed faster than they could be written');
    const prefixes = [...new Set(left.map(({ prefix }) => prefix))];
    const before = await readLanes(lanes, prefixes, session);
    const runs = new HealthRuns((prefix) => {
      const lane = before.get(prefix);
      return lane === undefined ? healthy() : toHealth(lane);
    });
    moveRuns(runs, left);
    const overtaken = new Set<string>();
    for (const [prefix, health] of runs.changed) {
      const isSame = { _id: prefix, v: before.get(prefix)?.v ?? 0 };
      const change = { $set: toRunFields(health), $inc: { v: 1 } };
      const { matchedCount } = await lanes.updateOne(isSame, change, within);
      if (matchedCount === 1) changed.set(prefix, health);
      else overtaken.add(prefix);
    }
    left = left.filter(({ prefix }) => overtaken.has(prefix));
  }
  return changed;
}
