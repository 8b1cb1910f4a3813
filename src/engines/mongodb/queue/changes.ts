import type { AttemptOutcome, DeliveryQueue } from '../../../push/queue/delivery-queue.ts';
import {
  type DeliveryChange,
  NO_RECORD,
  redeliveryRefusal,
  type Transition,
  transitionsOf,
  withoutWords,
} from '../../../push/queue/next-state.ts';
import { retryUpsert } from '../prepared-collections.ts';
import type { DeliveryCollections } from './collections.ts';
import { changedFields, guardOf, toRecordDocument, updateOf } from './documents.ts';
import { endStreaksInTime } from './lanes.ts';

/** Deliveries of one round of a bulk change. */
export const BULK = 500;
/** Tries of a redelivery: each time another process changed the delivery in between. */
const MAX_TRIES = 20;

/** What one round of a resume found and did. */
export interface Resumed {
  readonly found: number;
  readonly resumed: number;
  /** Where the next round continues. */
  readonly after: string;
}

/**
 * Makes the next held deliveries of an account due, by id, so that what is held again meanwhile is not resumed
 * twice. The time of the lanes' failure streaks ends first: an interruption leaves no streak that includes a hold.
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
  await endStreaksInTime(lanes, [...new Set(held.map(({ prefix }) => prefix))]);
  const resumed = await changeAll(deliveries, ids, { change: { kind: 'resume' }, nowMs });
  return { found: ids.length, resumed, after: last };
}

/** Ends the next open deliveries of a lane; says how many it found and ended. */
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
  const ids = open.map(({ _id }) => _id);
  const ended = await changeAll(deliveries, ids, { change: { kind: 'end lane', reason }, nowMs });
  return { found: open.length, ended };
}

/** Removes the deliveries that ended first before a time; says how many. */
export async function purgeSome(
  { deliveries }: DeliveryCollections,
  { endedBeforeMs, limit }: { readonly endedBeforeMs: number; readonly limit: number },
): Promise<number> {
  if (limit <= 0) return 0; // to MongoDB it would mean no limit
  const old = await deliveries
    .find({ ended_at: { $lt: endedBeforeMs } }, { projection: { _id: 1 }, hint: 'ended' })
    .sort({ ended_at: 1 })
    .limit(limit)
    .toArray();
  if (old.length === 0) return 0;
  const stillOld = { _id: { $in: old.map(({ _id }) => _id) }, ended_at: { $lt: endedBeforeMs } };
  return (await deliveries.deleteMany(stillOld, { hint: '_id_' })).deletedCount;
}

/** Forgets those made first before a time; says how many. Those of a former version count as made now. */
export async function purgeWithdrawals(
  { withdrawals }: DeliveryCollections,
  {
    madeBeforeMs,
    limit,
    nowMs,
  }: { readonly madeBeforeMs: number; readonly limit: number; readonly nowMs: number },
): Promise<number> {
  if (limit <= 0) return 0; // to MongoDB it would mean no limit
  const unknown = { made_at: { $exists: false } };
  await withdrawals.updateMany(unknown, { $set: { made_at: nowMs } }, { hint: 'by_time' });
  const isOld = { made_at: { $lt: madeBeforeMs } };
  const old = await withdrawals.find(isOld, { hint: 'by_time' }).sort({ made_at: 1 }).limit(limit).toArray();
  if (old.length === 0) return 0;
  return (await withdrawals.deleteMany({ _id: { $in: old.map(({ _id }) => _id) }, ...isOld })).deletedCount;
}

/**
 * Withdrawals are final in either order, without a transaction: the mark is stored before deliveries are ended, and
 * whoever makes a delivery due (enqueue, claim, redeliver) looks for the mark after that, and ends it again.
 */
export async function withdraw(
  { withdrawals, deliveries }: DeliveryCollections,
  transactionId: number,
  nowMs: number,
): Promise<void> {
  await retryUpsert(() =>
    withdrawals.replaceOne({ _id: transactionId }, { made_at: nowMs }, { upsert: true }),
  );
  const transition = onlyTransition({ kind: 'withdraw' }, nowMs);
  await deliveries.updateMany(
    { transaction_id: transactionId, ...guardOf(transition.when) },
    updateOf(transition),
  );
}

/** Which of the transactions were withdrawn. Their open deliveries end as if they had been stored as withdrawn. */
export async function endWithdrawn(
  { withdrawals, deliveries }: DeliveryCollections,
  transactionIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const marks = await withdrawals.find({ _id: { $in: [...new Set(transactionIds)] } }).toArray();
  const withdrawn = marks.map(({ _id }) => _id);
  if (withdrawn.length > 0) {
    const transition = onlyTransition({ kind: 'withdraw' }, 0);
    const { set, unset } = changedFields(transition.set);
    const record = { $literal: toRecordDocument(NO_RECORD) };
    await deliveries.updateMany({ transaction_id: { $in: withdrawn }, ...guardOf(transition.when) }, [
      { $set: { ...set, ended_at: '$created_at', record } },
      { $unset: unset },
    ]);
  }
  return new Set(withdrawn);
}

/** Empties the records, then what receivers said: attempts that are stored meanwhile keep no words already. */
export async function eraseRecords(
  { deliveries }: DeliveryCollections,
  transactionId: number,
): Promise<void> {
  const ofTransaction = { transaction_id: transactionId };
  await deliveries.updateMany(ofTransaction, { $set: { record: toRecordDocument(NO_RECORD) } });
  for await (const { _id, attempts } of deliveries.find(ofTransaction, { projection: { attempts: 1 } })) {
    const writes = attempts.map(({ by, outcome }) => ({
      updateOne: {
        filter: { _id, 'attempts.by': by },
        update: { $set: { 'attempts.$.outcome': withoutWordsOf(outcome) } },
      },
    }));
    if (writes.length > 0) await deliveries.bulkWrite(writes);
  }
}

/** Starts a new cycle. It is due before withdrawals are looked for again: a withdrawal ends it in either order. */
export async function redeliver(
  collections: DeliveryCollections,
  id: string,
  { force, dueAtMs }: { readonly force: boolean; readonly dueAtMs: number },
): ReturnType<DeliveryQueue['redeliver']> {
  const { deliveries } = collections;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const projection = { transaction_id: 1, state: 1, cycle: 1 };
    const found = await deliveries.findOne({ _id: id }, { projection });
    if (found === null) return 'not known';
    const { transaction_id, state, cycle } = found;
    if ((await endWithdrawn(collections, [transaction_id])).size > 0) return 'withdrawn';
    const refusal = redeliveryRefusal(state, force);
    if (refusal !== undefined) return refusal;
    const transition = onlyTransition({ kind: 'redeliver', force, cycle, dueAtMs }, dueAtMs);
    const unchanged = { _id: id, ...guardOf(transition.when) };
    const { matchedCount } = await deliveries.updateOne(unchanged, updateOf(transition));
    if (matchedCount === 0) continue;
    return (await endWithdrawn(collections, [transaction_id])).size > 0 ? 'withdrawn' : 'due';
  }
  throw new Error(`delivery ${id} changed faster than it could be made due`);
}

type ChangeWithoutAttempt = Exclude<DeliveryChange, { readonly leaseToken: string }>;

async function changeAll(
  deliveries: DeliveryCollections['deliveries'],
  ids: readonly string[],
  { change, nowMs }: { readonly change: ChangeWithoutAttempt; readonly nowMs: number },
): Promise<number> {
  const transition = onlyTransition(change, nowMs);
  const stillOpen = { _id: { $in: ids }, ...guardOf(transition.when) };
  return (await deliveries.updateMany(stillOpen, updateOf(transition), { hint: '_id_' })).modifiedCount;
}

function onlyTransition(change: ChangeWithoutAttempt, nowMs: number): Transition {
  const [transition] = transitionsOf(change, nowMs);
  return transition;
}

function withoutWordsOf(outcome: string): string {
  return JSON.stringify(withoutWords(JSON.parse(outcome) as AttemptOutcome));
}
