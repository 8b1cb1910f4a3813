import type { ClientSession } from 'mongodb';
import { SerialWork } from '../../../base/serial-work.ts';
import type { DeliveryReport, WebhookHealth } from '../../../push/queue/delivery.ts';
import { FailureStreaks, healthy } from '../../../push/queue/failure-streak.ts';
import { keptAttempt, nextState, type Transition, transitionsOf } from '../../../push/queue/next-state.ts';
import { STREAK, toProgress, toStored } from '../../stored/delivery.ts';
import type { MongoConnection } from '../driver/connection.ts';
import { type DeliveryCollections, deliveryCollections, insertMissing } from './collections.ts';
import { guardOf, rowOf, toHealth, toLaneDocument, updateEach, updateOf } from './documents.ts';

const NO_CHANGE: ReadonlyMap<string, WebhookHealth> = new Map();
/** An attempt of an erased one is kept without words. */
const IS_KEPT = { 'record.head': { $ne: '' } } as const;

/**
 * Records reports and moves the failure streaks.
 *
 * Reports that find their deliveries as expected, on lanes that stay healthy, are nearly everything: one look at the
 * lanes and one guarded update. For all others deliveries and lanes change in one transaction: a failure is counted
 * exactly once, whichever process dies.
 */
export class MongoReporter {
  readonly #connection: MongoConnection;
  /** Transactions of one process on the same lanes would only make each other fail. */
  readonly #transactions = new SerialWork();

  constructor(connection: MongoConnection) {
    this.#connection = connection;
  }

  /**
   * Returns the health of each lane whose streak changed. Throws before anything is written where a report can not
   * be stored.
   */
  async record(
    collections: DeliveryCollections,
    reports: readonly DeliveryReport[],
    nowMs: number,
  ): Promise<ReadonlyMap<string, WebhookHealth>> {
    for (const report of reports) assertStorable(report);
    const expected = reports.map((report) => ({ ...report, transition: transitionsOf(report, nowMs)[0] }));
    const moving = expected.filter(({ transition }) => transition.streak !== undefined);
    const lanes = await readLanes(
      collections,
      moving.map(({ prefix }) => prefix),
    );
    const extending = moving.filter(({ transition }) => transition.streak === 'extend');
    const isHealthy = [...lanes.values()].every(({ failedInARow }) => failedInARow === 0);
    const isOnce = new Set(reports.map(({ id }) => id)).size === reports.length;
    if (extending.length === 0 && isHealthy && isOnce && (await isAsExpected(collections, expected)))
      return NO_CHANGE;
    const missing = new Set(extending.map(({ prefix }) => prefix).filter((prefix) => !lanes.has(prefix)));
    const made = [...missing].map((prefix) => toLaneDocument(prefix, healthy()));
    await insertMissing(collections.lanes, made); // so that every change of a streak is an update
    return this.#transactions.run(() => this.#inTransaction(reports, nowMs));
  }

  #inTransaction(
    reports: readonly DeliveryReport[],
    nowMs: number,
  ): Promise<ReadonlyMap<string, WebhookHealth>> {
    return this.#connection.use((db) =>
      this.#connection.transaction((session) =>
        recordOnce(deliveryCollections(db), reports, { nowMs, session }),
      ),
    );
  }
}

/** Whether every report found its delivery as it expects it; what of them did is recorded either way. */
async function isAsExpected(
  { deliveries }: DeliveryCollections,
  expected: readonly { readonly id: string; readonly transition: Transition }[],
): Promise<boolean> {
  if (expected.length === 0) return true;
  const alike = Map.groupBy(expected, ({ transition }) =>
    JSON.stringify([transition.when, transition.attempt === undefined]),
  );
  const writes = [...alike.values()].map((reports) => {
    const { transition } = reports[0] as (typeof reports)[number];
    const isKept = transition.attempt === undefined ? {} : IS_KEPT;
    const filter = { _id: { $in: reports.map(({ id }) => id) }, ...guardOf(transition), ...isKept };
    const update = updateEach(new Map(reports.map((report) => [report.id, report.transition])));
    return { updateMany: { filter, update, hint: '_id_' } };
  });
  return (await deliveries.bulkWrite(writes)).matchedCount === expected.length;
}

/** What was recorded before changes nothing again. Where another process is faster the transaction is repeated. */
async function recordOnce(
  collections: DeliveryCollections,
  reports: readonly DeliveryReport[],
  { nowMs, session }: { readonly nowMs: number; readonly session: ClientSession },
): Promise<ReadonlyMap<string, WebhookHealth>> {
  const { deliveries, lanes } = collections;
  const ids = reports.map(({ id }) => id);
  const found = await deliveries
    .find({ _id: { $in: ids } }, { projection: { attempts: 0 }, session })
    .toArray();
  const known = new Map(
    found.map((document) => {
      const { prefix, record } = document;
      return [document._id, { prefix, record, progress: toProgress(rowOf(document)) }];
    }),
  );
  const before = await readLanes(
    collections,
    found.map(({ prefix }) => prefix),
    session,
  );
  const streaks = new FailureStreaks((prefix) => before.get(prefix) ?? healthy());
  const writes = [];
  for (const report of reports) {
    const delivery = known.get(report.id);
    const next = delivery && nextState(delivery.progress, report, nowMs);
    if (delivery === undefined || next === undefined) continue;
    const { progress, attempt } = next;
    const kept = attempt && keptAttempt(attempt, delivery.record);
    const { attemptsInCycle: _, ...set } = progress;
    writes.push({ updateOne: { filter: { _id: report.id }, update: updateOf({ set, attempt: kept }) } });
    known.set(report.id, { ...delivery, progress });
    streaks.apply(delivery.prefix, next);
  }
  if (writes.length > 0) await deliveries.bulkWrite(writes, { session });
  for (const [prefix, health] of streaks.changed)
    await lanes.updateOne({ _id: prefix }, { $set: toStored(STREAK, health) }, { session });
  return streaks.changed;
}

async function readLanes(
  { lanes }: DeliveryCollections,
  prefixes: readonly string[],
  session?: ClientSession,
): Promise<ReadonlyMap<string, WebhookHealth>> {
  if (prefixes.length === 0) return new Map();
  const found = lanes.find({ _id: { $in: [...new Set(prefixes)] } }, session && { session });
  return new Map((await found.toArray()).map((lane) => [lane._id, toHealth(lane)]));
}

/** MongoDB itself would take anything. */
function assertStorable(report: DeliveryReport): void {
  const attempt = 'attempt' in report ? report.attempt : null;
  const times = [
    report.kind === 'retry' ? report.dueAtMs : 0,
    attempt?.startedAtMs ?? 0,
    attempt?.durationMs ?? 0,
  ];
  if (!times.every(Number.isFinite))
    throw new RangeError(`a time of the report on ${report.id} is not a number`);
}
