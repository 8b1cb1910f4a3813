import { ObjectId } from 'mongodb';
import { FuelError } from '../../../base/errors.ts';
import { jsonBytes, MAX_BATCH_BYTES } from '../../../event-store/batch-bytes.ts';
import { MAX_ATTEMPTS_KEPT } from '../../../push/queue/delivery-queue.ts';
import type { StoredDelivery, StoredStreak } from '../../../push/queue/log-copy.ts';
import { type DeliveryCollections, type DeliveryDocument, insertMissing } from './collections.ts';
import {
  identityOf,
  toAttemptDocument,
  toDelivery,
  toHealth,
  toRecordDocument,
  toStreakFields,
} from './documents.ts';

const BATCH = 500;

export interface LogName {
  readonly id: string;
  readonly startedAtMs: number;
}

/** The log's name; one without a name gets `first`, the same for processes that ask at once. */
export async function nameOf({ log }: DeliveryCollections, first: LogName): Promise<LogName> {
  await insertMissing(log, [{ _id: 'log', id: first.id, started_at: first.startedAtMs }]);
  const named = await log.findOne({ _id: 'log' });
  return named === null ? first : { id: named.id, startedAtMs: named.started_at };
}

/** Gives an empty log another name. */
export async function adoptName({ log, deliveries }: DeliveryCollections, name: LogName): Promise<void> {
  const present = await log.findOne({ _id: 'log' });
  if (present?.id === name.id) return;
  if (present !== null && (await deliveries.findOne({}, { projection: { _id: 1 } })) !== null) {
    throw new FuelError(
      'REFUSED',
      `the delivery log ${present.id} holds deliveries: it can't become the log ${name.id}, use an empty one`,
    );
  }
  await log.replaceOne({ _id: 'log' }, { id: name.id, started_at: name.startedAtMs }, { upsert: true });
}

export async function nextDeliveries(
  { deliveries }: DeliveryCollections,
  after: string,
): Promise<StoredDelivery[]> {
  const found = deliveries
    .find({ _id: { $gt: after } })
    .sort({ _id: 1 })
    .limit(BATCH);
  const batch: StoredDelivery[] = [];
  let bytes = 0;
  for await (const document of found) {
    batch.push({ ...toDelivery(document), endedAtMs: document.ended_at ?? null });
    bytes += jsonBytes(batch.at(-1));
    if (bytes >= MAX_BATCH_BYTES) break;
  }
  return batch;
}

export async function nextWithdrawals(
  { withdrawals }: DeliveryCollections,
  after: number,
): Promise<number[]> {
  const batch = withdrawals.find({ _id: { $gt: after } }).sort({ _id: 1 });
  return (await batch.limit(BATCH).toArray()).map(({ _id }) => _id);
}

export async function nextStreaks({ lanes }: DeliveryCollections, after: string): Promise<StoredStreak[]> {
  const batch = lanes.find({ _id: { $gt: after } }).sort({ _id: 1 });
  return (await batch.limit(BATCH).toArray()).map((lane) => ({ prefix: lane._id, health: toHealth(lane) }));
}

/** Plain inserts are several times faster; only existing documents are replaced. */
export async function storeDeliveries(
  { deliveries }: DeliveryCollections,
  stored: readonly StoredDelivery[],
): Promise<void> {
  const documents = stored.map(toStoredDocument);
  const existing = await insertMissing(deliveries, documents);
  const writes = documents
    .filter(({ _id }) => existing.has(_id))
    .map((replacement) => ({ replaceOne: { filter: { _id: replacement._id }, replacement } }));
  if (writes.length > 0) await deliveries.bulkWrite(writes, { ordered: false });
}

export async function storeStreaks(
  { lanes }: DeliveryCollections,
  streaks: readonly StoredStreak[],
): Promise<void> {
  const documents = streaks.map(({ prefix, health }) => ({ _id: prefix, ...toStreakFields(health) }));
  const existing = await insertMissing(lanes, documents);
  for (const { prefix, health } of streaks) {
    if (!existing.has(prefix)) continue;
    await lanes.updateOne({ _id: prefix }, { $set: toStreakFields(health) });
  }
}

function toStoredDocument(stored: StoredDelivery): DeliveryDocument {
  const { dueAtMs, endedAtMs } = stored;
  return {
    ...identityOf(stored),
    state: stored.state,
    reason: stored.reason,
    cycle: stored.cycle,
    attempts_in_cycle: stored.attemptsInCycle,
    ...(dueAtMs === null ? {} : { due_at: dueAtMs }),
    ...(endedAtMs === null ? {} : { ended_at: endedAtMs }),
    record: toRecordDocument(stored.record),
    attempts: stored.attempts
      .slice(-MAX_ATTEMPTS_KEPT)
      .map((attempt) => toAttemptDocument(attempt, new ObjectId())),
  };
}
