import { type AnyBulkWriteOperation, type ClientSession, type Document, ObjectId } from 'mongodb';
import {
  type DeliveryReport,
  MAX_ATTEMPTS_KEPT,
  type WebhookHealth,
} from '../../../push/queue/delivery-queue.ts';
import { keptAttempt, type Transition, transitionsOf } from '../../../push/queue/next-state.ts';
import { SerialWork } from '../../../push/queue/serial-work.ts';
import type { MongoConnection } from '../connection.ts';
import { readLeaseToken } from './claim.ts';
import { type DeliveryCollections, type DeliveryDocument, deliveryCollections } from './collections.ts';
import { changedFields, guardOf, toAttemptDocument, updateOf } from './documents.ts';
import { ensureLanes, moveStreaks, readLanes } from './lanes.ts';

const NO_CHANGE: ReadonlyMap<string, WebhookHealth> = new Map();

/** Whether the record of a delivery is erased decides how an attempt is kept. */
const IS_KEPT = { 'record.head': { $ne: '' } } as const;
const IS_ERASED = { 'record.head': '' } as const;

type Deliveries = DeliveryCollections['deliveries'];
type InSession = { readonly session?: ClientSession };

/** One report as it is written. */
interface PendingReport {
  readonly id: string;
  /** The lane of the claim. */
  readonly prefix: string;
  /** What it does to a delivery that its claim still has, or a success to any in its cycle. */
  readonly expected: Transition;
  /** What else it may do. */
  readonly otherwise: readonly Transition[];
  /** Marks the attempt of a transition that moves the failure streak. */
  readonly by: ObjectId;
}

/**
 * Records reports and moves the failure streaks.
 *
 * Successes of healthy lanes, which is nearly everything, are one look at the lanes and one write. Where a streak
 * changes, deliveries and lanes change in one transaction: a failure is counted exactly once, whichever process dies.
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
    const pending = reports.map((report) => pendingReport(report, nowMs));
    if (!(await this.#mayMoveStreak(collections, pending))) {
      await writeAll(collections, pending, {});
      return NO_CHANGE;
    }
    return this.#transactions.run(() => this.#inTransaction(pending));
  }

  /** Also makes the lanes that are missing. */
  async #mayMoveStreak({ lanes }: DeliveryCollections, pending: readonly PendingReport[]): Promise<boolean> {
    const moving = [...new Set(pending.filter(movesStreak).map(({ prefix }) => prefix))];
    if (moving.length === 0) return false;
    const before = await readLanes(lanes, moving);
    const someStreak = [...before.values()].some(({ failed_in_a_row }) => failed_in_a_row > 0);
    if (!someStreak && !pending.some(({ expected }) => expected.streak === 'extend')) return false;
    const missing = moving.filter((prefix) => !before.has(prefix));
    await ensureLanes(lanes, missing);
    return true;
  }

  #inTransaction(pending: readonly PendingReport[]): Promise<ReadonlyMap<string, WebhookHealth>> {
    return this.#connection.use((db) => {
      const collections = deliveryCollections(db);
      return this.#connection.client.withSession((session) =>
        session.withTransaction(async () => {
          const counted = await writeAll(collections, pending, { session });
          const moves = counted.map(({ prefix, expected }) => ({ prefix, transition: expected }));
          return moveStreaks(collections.lanes, moves, session);
        }),
      );
    });
  }
}

function pendingReport(report: DeliveryReport, nowMs: number): PendingReport {
  assertStorable(report);
  const { prefix, stored } = readLeaseToken(report.leaseToken);
  const [expected, ...otherwise] = transitionsOf({ ...report, leaseToken: stored }, nowMs);
  return { id: report.id, prefix, expected, otherwise, by: new ObjectId() };
}

function movesStreak({ expected }: PendingReport): boolean {
  return expected.streak !== undefined;
}

/** Writes the reports; returns those of them that count in a streak. */
async function writeAll(
  { deliveries }: DeliveryCollections,
  pending: readonly PendingReport[],
  session: InSession,
): Promise<readonly PendingReport[]> {
  const counted: PendingReport[] = [];
  for (const part of withoutRepetition(pending)) {
    for (const each of await writePart(deliveries, part, session)) counted.push(each);
  }
  return counted;
}

/** Parts in which no delivery is reported twice: for one that is, the order matters. Nearly always a single part. */
function withoutRepetition(pending: readonly PendingReport[]): readonly (readonly PendingReport[])[] {
  const parts: PendingReport[][] = [[]];
  const ids = new Set<string>();
  for (const each of pending) {
    if (ids.has(each.id)) {
      ids.clear();
      parts.push([]);
    }
    ids.add(each.id);
    parts.at(-1)?.push(each);
  }
  return parts;
}

/** One round trip where every report finds its delivery as expected, or two where some are no successes. */
async function writePart(
  deliveries: Deliveries,
  pending: readonly PendingReport[],
  session: InSession,
): Promise<readonly PendingReport[]> {
  const [first] = pending.filter(({ expected }) => expected.streak === 'end');
  const { successes = [], others = [] } = Object.groupBy(pending, ({ expected }) =>
    expected.streak === 'end' && expected.when.cycle === first?.expected.when.cycle ? 'successes' : 'others',
  );
  let matched = await recordSuccesses(deliveries, successes, session);
  if (others.length > 0) {
    const writes = others.map((each) => writeOf(each, each.expected, false));
    matched += (await deliveries.bulkWrite(writes, { ordered: true, ...session })).matchedCount;
  }
  const moving = pending.filter(movesStreak);
  if (matched === pending.length) return moving;
  const writes = pending.flatMap(otherWritesOf);
  if (writes.length > 0) await deliveries.bulkWrite(writes, { ordered: true, ...session });
  if (moving.length === 0) return moving;
  const ids = moving.map(({ id }) => id);
  const projection = { 'attempts.by': 1 };
  const found = await deliveries.find({ _id: { $in: ids } }, { projection, ...session }).toArray();
  const counted = new Set(found.flatMap(({ attempts }) => attempts.map(({ by }) => by.toHexString())));
  return moving.filter(({ by }) => counted.has(by.toHexString()));
}

/**
 * Records successes of one cycle by a single update in which each delivery picks its own: two thirds of the server's
 * work for as many updates. No id is given twice. Says how many counted.
 */
async function recordSuccesses(
  deliveries: Deliveries,
  successes: readonly PendingReport[],
  session: InSession,
): Promise<number> {
  const [first] = successes;
  if (first === undefined) return 0;
  const ids = successes.map(({ id }) => id);
  const own = successes.map(({ expected: { set, attempt }, by }) => ({
    ended_at: set?.endedAtMs,
    attempts: attempt === undefined ? [] : [toAttemptDocument(attempt, by)],
  }));
  const { set, unset } = changedFields(first.expected.set);
  const change: Document[] = [
    { $set: { own: { $arrayElemAt: [{ $literal: own }, { $indexOfArray: [{ $literal: ids }, '$_id'] }] } } },
    {
      $set: {
        ...set,
        ended_at: '$own.ended_at',
        attempts_in_cycle: { $add: ['$attempts_in_cycle', 1] },
        attempts: { $slice: [{ $concatArrays: ['$attempts', '$own.attempts'] }, -MAX_ATTEMPTS_KEPT] },
      },
    },
    { $unset: ['own', ...unset] },
  ];
  const filter = { _id: { $in: ids }, ...guardOf(first.expected.when), ...IS_KEPT };
  return (await deliveries.updateMany(filter, change, { hint: '_id_', ...session })).matchedCount;
}

/**
 * An `updateMany`, though it names one id: for an `updateOne` the driver has the server keep a record for a retry, a
 * tenth of the work, and the guards make a second report harmless. An attempt outside the streak gets a mark of its
 * own: with that of its report it would look as if it had counted.
 */
function writeOf(
  { id, by }: PendingReport,
  transition: Transition,
  isErased: boolean,
): AnyBulkWriteOperation<DeliveryDocument> {
  const { when, attempt, streak } = transition;
  const kept = attempt && keptAttempt(attempt, isErased);
  const update = updateOf({ ...transition, attempt: kept }, streak === undefined ? new ObjectId() : by);
  const record = attempt === undefined ? {} : isErased ? IS_ERASED : IS_KEPT;
  return { updateMany: { filter: { _id: id, ...guardOf(when), ...record }, update, hint: '_id_' } };
}

/** What a report may have to do where its delivery was not as expected: it was erased, or ended meanwhile. */
function otherWritesOf(each: PendingReport): AnyBulkWriteOperation<DeliveryDocument>[] {
  const { expected, otherwise } = each;
  const writes = otherwise.flatMap((transition) => [
    writeOf(each, transition, false),
    writeOf(each, transition, true),
  ]);
  return expected.attempt === undefined ? writes : [writeOf(each, expected, true), ...writes];
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
