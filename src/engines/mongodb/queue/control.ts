import type { Collection, Filter } from 'mongodb';
import { type RenderedRecord, redactedRecord } from '../../../../projections/record.ts';
import type { Clock } from '../../../base/clock.ts';
import { renameRefused } from '../../../push/delivery-log.ts';
import type { AttemptOutcome, LogName, StoredDelivery } from '../../../push/queue/delivery.ts';
import type { DeliveryControl } from '../../../push/queue/delivery-queue.ts';
import { NO_RECORD, redeliveryRefusal, transitionOf, withoutWords } from '../../../push/queue/next-state.ts';
import { fromStored, RECORD } from '../../stored/delivery.ts';
import { type DeliveryCollections, insertMissing, LONG_QUERY_MS, type Use } from './collections.ts';
import { guardOf, toDocument, toLaneDocument, toRecordDocument, updateOf } from './documents.ts';
import { endWithdrawn, withdraw } from './withdrawals.ts';

/** Tries of a change: each time another process changed the delivery in between. */
const MAX_TRIES = 20;

export function mongoControl(
  use: Use,
  clock: Clock,
  madeDue: (timesMs: readonly number[]) => void,
): DeliveryControl {
  return {
    withdraw: (transactionIds, nowMs) => use((collections) => withdraw(collections, transactionIds, nowMs)),
    erase: (transactionId, nowMs) =>
      use(async (collections) => {
        await withdraw(collections, [transactionId], nowMs);
        await changeRecords(collections, transactionId, () => NO_RECORD);
      }),
    redact: (transactionId) =>
      use((collections) => changeRecords(collections, transactionId, redactedRecord)),
    async redeliver(id, options) {
      const answer = await use((collections) => redeliver(collections, id, options));
      if (answer === 'due') madeDue([options.dueAtMs]);
      return answer;
    },
    purge: (endedBeforeMs, limit) =>
      use(async ({ deliveries }) => {
        if (limit <= 0) return 0; // to MongoDB it would mean no limit
        const isOld = { ended_at: { $lt: endedBeforeMs } };
        const old = deliveries.find(isOld, { projection: { _id: 1 }, hint: 'ended' }).sort({ ended_at: 1 });
        const ids = (await old.limit(limit).toArray()).map(({ _id }) => _id);
        return (await deliveries.deleteMany({ _id: { $in: ids }, ...isOld }, { hint: '_id_' })).deletedCount;
      }),
    purgeWithdrawals: (madeBeforeMs, limit) =>
      use(async ({ withdrawals }) => {
        if (limit <= 0) return 0;
        const unknown = { made_at: { $exists: false } }; // of a former version: made now
        await withdrawals.updateMany(unknown, { $set: { made_at: clock.now() } }, { hint: 'by_time' });
        const isOld = { made_at: { $lt: madeBeforeMs } };
        const old = withdrawals.find(isOld, { hint: 'by_time' }).sort({ made_at: 1 });
        const ids = (await old.limit(limit).toArray()).map(({ _id }) => _id);
        return (await withdrawals.deleteMany({ _id: { $in: ids }, ...isOld })).deletedCount;
      }),
    store: ({ name, deliveries = [], withdrawn = [], streaks = [] }) =>
      use(async (collections) => {
        if (name !== undefined) await adopt(collections, name);
        if (withdrawn.length > 0) await storeWithdrawn(collections, withdrawn, clock.now());
        if (deliveries.length > 0) await storeDeliveries(collections, deliveries);
        await replaceAll(
          collections.lanes,
          streaks.map(({ prefix, ...health }) => toLaneDocument(prefix, health)),
        );
      }, LONG_QUERY_MS),
  };
}

/** Starts a new cycle. It is due before withdrawals are looked for again: a withdrawal ends it in either order. */
async function redeliver(
  collections: DeliveryCollections,
  id: string,
  { force, dueAtMs }: Parameters<DeliveryControl['redeliver']>[1],
): ReturnType<DeliveryControl['redeliver']> {
  const { deliveries } = collections;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const found = await deliveries.findOne(
      { _id: id },
      { projection: { transaction_id: 1, state: 1, cycle: 1 } },
    );
    if (found === null) return 'not known';
    const { transaction_id, state, cycle } = found;
    if ((await endWithdrawn(collections, [transaction_id])).size > 0) return 'withdrawn';
    const refusal = redeliveryRefusal(state, force);
    if (refusal !== undefined) return refusal;
    const transition = transitionOf({ kind: 'redeliver', force, cycle, dueAtMs }, dueAtMs);
    const unchanged = { _id: id, ...guardOf(transition) };
    const { matchedCount } = await deliveries.updateOne(unchanged, updateOf(transition));
    if (matchedCount === 0) continue;
    return (await endWithdrawn(collections, [transaction_id])).size > 0 ? 'withdrawn' : 'due';
  }
  throw changedTooFast(`delivery ${id}`);
}

/** And empties what receivers said, which may repeat the record. One that changes meanwhile is looked at again. */
async function changeRecords(
  { deliveries }: DeliveryCollections,
  transactionId: number,
  change: (record: RenderedRecord) => RenderedRecord,
): Promise<number> {
  let changed = 0;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    let isDone = true;
    for await (const document of deliveries.find({ transaction_id: transactionId })) {
      const { _id, record: stored, attempts, cycle, attempts_in_cycle } = document;
      const before = fromStored<RenderedRecord>(RECORD, { ...stored });
      const record = change(before);
      if (record === before) continue;
      const silent = attempts.map((attempt) => ({ ...attempt, outcome: withoutWordsOf(attempt.outcome) }));
      const { matchedCount } = await deliveries.updateOne(
        { _id, cycle, attempts_in_cycle },
        { $set: { record: toRecordDocument(record), attempts: silent } },
      );
      if (matchedCount === 0) isDone = false;
      else changed += 1;
    }
    if (isDone) return changed;
  }
  throw changedTooFast(`a delivery of transaction ${transactionId}`);
}

function changedTooFast(what: string): Error {
  return new Error(`${what} changed faster than it could be changed here`);
}

function withoutWordsOf(outcome: string): string {
  return JSON.stringify(withoutWords(JSON.parse(outcome) as AttemptOutcome));
}

async function adopt({ log, deliveries }: DeliveryCollections, name: LogName): Promise<void> {
  const present = await log.findOne({ _id: 'log' });
  if (present?.id === name.id) return;
  if (present !== null && (await deliveries.findOne({}, { projection: { _id: 1 } })) !== null)
    throw renameRefused(present.id, name.id);
  await log.replaceOne({ _id: 'log' }, { id: name.id, started_at: name.startedAtMs }, { upsert: true });
}

async function storeWithdrawn(
  { withdrawals }: DeliveryCollections,
  transactionIds: readonly number[],
  nowMs: number,
): Promise<void> {
  await insertMissing(
    withdrawals,
    [...new Set(transactionIds)].map((_id) => ({ _id, made_at: nowMs })),
  );
}

async function storeDeliveries(
  { deliveries }: DeliveryCollections,
  stored: readonly StoredDelivery[],
): Promise<void> {
  await replaceAll(
    deliveries,
    stored.map((each) => toDocument(each, { ...each, leaseToken: null }, each)),
  );
}

/** Plain inserts are several times faster; only existing documents are replaced. */
async function replaceAll<T extends { readonly _id: string }>(
  collection: Collection<T>,
  documents: readonly T[],
): Promise<void> {
  const existing = await insertMissing(collection, documents);
  const writes = documents
    .filter(({ _id }) => existing.has(_id))
    .map((replacement) => ({ replaceOne: { filter: { _id: replacement._id } as Filter<T>, replacement } }));
  if (writes.length > 0) await collection.bulkWrite(writes, { ordered: false });
}
