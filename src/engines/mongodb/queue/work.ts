import type { Document } from 'mongodb';
import type { Clock } from '../../../base/clock.ts';
import type { DeliveryWork, OpenOfLane } from '../../../push/queue/delivery-queue.ts';
import { healthy } from '../../../push/queue/failure-streak.ts';
import { type DeliveryChange, transitionOf } from '../../../push/queue/next-state.ts';
import { cyclesOf, STREAK, toStored } from '../../stored/delivery.ts';
import type { MongoConnection } from '../driver/connection.ts';
import { claimDue, laneHeads } from './claim.ts';
import { type DeliveryCollections, insertMissing, type Use } from './collections.ts';
import { guardOf, toLaneDocument, updateOf } from './documents.ts';
import { DueFloor } from './due-floor.ts';
import { storeNew } from './enqueue.ts';
import { MongoReporter } from './report.ts';
import { PolledSignal } from './signal.ts';

/** Deliveries of one round of a bulk change. */
const BULK = 500;

export interface WorkOptions {
  readonly connection: MongoConnection;
  readonly clock: Clock;
  readonly pollMs: number;
}

export function mongoWork(
  use: Use,
  { connection, clock, pollMs }: WorkOptions,
): DeliveryWork & { readonly changed: PolledSignal; readonly madeDue: (timesMs: readonly number[]) => void } {
  const reporter = new MongoReporter(connection);
  const floor = new DueFloor();
  const isDue = async (): Promise<boolean> => {
    const first = await floor.look('start', (fromMs) => use((collections) => firstDue(collections, fromMs)));
    return (first ?? Infinity) <= clock.now();
  };
  const changed = new PolledSignal({ isDue, pollMs });
  /** While it is polled, what other processes make due before the floor is found by the next poll. */
  const fromMs = (): number => (changed.isPolling ? floor.atMs : 0);
  const madeDue = (timesMs: readonly number[]): void => {
    for (const atMs of timesMs) floor.lower(atMs);
    if (timesMs.length > 0) changed.notify();
  };
  return {
    changed,
    madeDue,
    async nextDueAtMs(laterThanMs = -1) {
      const from = changed.isPolling ? 'floor' : 'start';
      const first = await floor.look(from, (fromMs) => use((collections) => firstDue(collections, fromMs)));
      if (first === undefined || first > laterThanMs) return first;
      return use((collections) => nextOfOtherLanes(collections, laterThanMs));
    },
    async enqueue(deliveries, claimFor) {
      const { claimed, unclaimed } = await use((collections) => storeNew(collections, deliveries, claimFor));
      if (claimFor !== undefined) floor.lower(claimFor.nowMs + claimFor.leaseMs);
      if (unclaimed > 0) madeDue(deliveries.map(({ createdAtMs }) => createdAtMs));
      return claimed;
    },
    async claim(options) {
      const claimed = await use((collections) => claimDue(collections, options, fromMs()));
      floor.lower(options.nowMs + options.leaseMs);
      return claimed;
    },
    async report(reports) {
      const nowMs = clock.now();
      const streaks = await use((collections) => reporter.record(collections, reports, nowMs));
      madeDue(
        reports.flatMap((report) =>
          report.kind === 'retry' ? report.dueAtMs : report.kind === 'released' ? nowMs : [],
        ),
      );
      return streaks;
    },
    /** In order. One index search for each account, however many deliveries it has. */
    heldAccounts: () =>
      use(async ({ deliveries }) => {
        const accounts = deliveries.aggregate<{ _id: number }>(heldAccountsPipeline(), { hint: 'held' });
        return (await accounts.toArray()).map(({ _id }) => _id).sort((a, b) => a - b);
      }),
    async resume(accountId, nowMs) {
      let total = 0;
      for (let after = ''; ; ) {
        const at = { accountId, after, nowMs };
        const { ids, count } = await use((collections) => resumeSome(collections, at));
        if (count > 0) madeDue([nowMs]);
        total += count;
        if (ids.length < BULK) return total;
        after = ids.at(-1) ?? after;
      }
    },
    async endLane(prefix, reason, nowMs, which = {}) {
      let total = 0;
      for (;;) {
        const end = { prefix, reason, nowMs, which };
        const { ids, count } = await use((collections) => endSome(collections, end));
        total += count;
        if (ids.length < BULK) return total;
      }
    },
    resetHealth: (prefix, enabledAtMs) =>
      use(async ({ lanes }) => {
        if ((await lanes.findOne({ _id: prefix, reset_at: { $gte: enabledAtMs } })) !== null) return; // as at most starts
        await insertMissing(lanes, [toLaneDocument(prefix, healthy())]);
        const isLater = { $not: { $gte: enabledAtMs } };
        const reset = { ...toStored(STREAK, healthy()), reset_at: enabledAtMs };
        await lanes.updateOne({ _id: prefix, reset_at: isLater, failing_since: isLater }, { $set: reset });
        await lanes.updateOne({ _id: prefix }, { $max: { reset_at: enabledAtMs } });
      }),
  };
}

export function heldAccountsPipeline(): Document[] {
  return [
    { $match: { state: 'held' } },
    { $sort: { state: 1, account_id: 1 } },
    { $group: { _id: '$account_id' } },
  ];
}

/** Reads one index entry. */
async function firstDue({ deliveries }: DeliveryCollections, fromMs: number): Promise<number | undefined> {
  const projection = { _id: 0, due_at: 1 };
  const first = deliveries.find({ due_at: { $gte: fromMs } }, { projection, hint: 'due' });
  return (await first.sort({ due_at: 1 }).limit(1).toArray())[0]?.due_at;
}

/** Leaves out the lanes with something due by then. Reads an index entry for each lane. */
async function nextOfOtherLanes(
  { deliveries }: DeliveryCollections,
  laterThanMs: number,
): Promise<number | undefined> {
  const later = { $match: { due_at: { $gt: laterThanMs } } };
  const earliest = { $group: { _id: null, due_at: { $min: '$due_at' } } };
  const [next] = await deliveries
    .aggregate<{ due_at: number }>([...laneHeads(), later, earliest], { hint: 'due_in_lane' })
    .toArray();
  return next?.due_at;
}

/** What one round of a bulk change found, and how many of it changed. */
interface Round {
  readonly ids: readonly string[];
  readonly count: number;
}

/**
 * Makes the next held deliveries of an account due, by id, so that what is held again meanwhile is not resumed
 * twice. The time of the lanes' failure streaks ends first: an interruption leaves no streak that includes a hold.
 */
async function resumeSome(
  collections: DeliveryCollections,
  { accountId, after, nowMs }: { readonly accountId: number; readonly after: string; readonly nowMs: number },
): Promise<Round> {
  const isNext = { state: 'held', account_id: accountId, _id: { $gt: after } } as const;
  const held = await collections.deliveries
    .find(isNext, { projection: { prefix: 1 }, hint: 'held' })
    .sort({ _id: 1 })
    .limit(BULK)
    .toArray();
  if (held.length === 0) return { ids: [], count: 0 };
  const timed = { _id: { $in: held.map(({ prefix }) => prefix) }, failing_since: { $ne: null } };
  await collections.lanes.updateMany(timed, { $set: { failing_since: null } });
  return changeAll(collections, held, { change: { kind: 'resume' }, nowMs });
}

/** Ends the next open deliveries of a lane. */
async function endSome(
  collections: DeliveryCollections,
  {
    prefix,
    reason,
    nowMs,
    which: { before = Infinity, redelivered },
  }: {
    readonly prefix: string;
    readonly reason: string;
    readonly nowMs: number;
    readonly which: OpenOfLane;
  },
): Promise<Round> {
  const [from, to] = cyclesOf(redelivered);
  const which = { prefix, cycle: { $gte: from, $lte: to }, position: { $lt: before } };
  const find = (state: 'pending' | 'held', hint: string, limit: number) =>
    collections.deliveries.find({ state, ...which }, { projection: { _id: 1 }, limit, hint }).toArray();
  const open = await find('pending', 'due_in_lane', BULK);
  const more = open.length < BULK ? await find('held', 'held_in_lane', BULK - open.length) : [];
  return changeAll(collections, [...open, ...more], { change: { kind: 'end lane', reason }, nowMs });
}

/** Changes those that are still as they were found. */
async function changeAll(
  { deliveries }: DeliveryCollections,
  found: readonly { readonly _id: string }[],
  { change, nowMs }: { readonly change: DeliveryChange; readonly nowMs: number },
): Promise<Round> {
  const ids = found.map(({ _id }) => _id);
  if (ids.length === 0) return { ids, count: 0 };
  const transition = transitionOf(change, nowMs);
  const stillOpen = { _id: { $in: ids }, ...guardOf(transition) };
  const { modifiedCount } = await deliveries.updateMany(stillOpen, updateOf(transition), { hint: '_id_' });
  return { ids, count: modifiedCount };
}
