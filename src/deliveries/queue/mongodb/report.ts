import type { AnyBulkWriteOperation, ClientSession, Filter, UpdateFilter } from 'mongodb';
import { ObjectId } from 'mongodb';
import { type Attempt, type DeliveryReport, MAX_ATTEMPTS_KEPT } from '../delivery-queue.ts';
import { endOf, type HealthRuns } from '../health-run.ts';
import { attemptWithoutWords } from '../withdrawal.ts';
import { readLease } from './claim.ts';
import type { DeliveryCollections, DeliveryDocument } from './collections.ts';
import { toAttemptDocument } from './documents.ts';
import { recordSuccesses, type Success } from './successes.ts';
import { KEEPS_NO_RECORD, KEEPS_RECORD, NO_MORE_DUE } from './withdrawals.ts';

/** One report as it is written. */
export interface PendingReport {
  readonly report: DeliveryReport;
  /** The lane of the claim. */
  readonly prefix: string;
  /** Marks the attempt that it records. */
  readonly by: ObjectId;
  /** When it came: the time of what has none of its own. */
  readonly nowMs: number;
}

/** What reports come to, in their order. Throws where one could not be stored. */
export function pendingReports(reports: readonly DeliveryReport[], nowMs: number): PendingReport[] {
  return reports.map((report) => {
    assertStorable(report);
    return { report, prefix: readLease(report.lease).prefix, by: new ObjectId(), nowMs };
  });
}

/** Whether the lane's run counts it: a failure at its last attempt, or a success. */
export function movesRun({ report }: PendingReport): boolean {
  return report.kind === 'delivered' || (report.kind === 'failed' && report.attempt !== null);
}

export function isFailure(each: PendingReport): boolean {
  return each.report.kind === 'failed' && movesRun(each);
}

/** Tells the runs of reports that counted, in their order. */
export function moveRuns(runs: HealthRuns, pending: readonly PendingReport[]): void {
  for (const { report, prefix } of pending) {
    if (report.kind === 'delivered') runs.delivered(prefix);
    if (report.kind === 'failed' && report.attempt !== null) runs.failed(prefix, report.attempt);
  }
}

/**
 * Writes them in a round trip or two; returns those of them that moved a run and counted. A report of what another
 * claim has, or of what has ended, matches nothing.
 */
export async function settle(
  { deliveries }: DeliveryCollections,
  pending: readonly PendingReport[],
  session?: ClientSession,
): Promise<readonly PendingReport[]> {
  const moved: PendingReport[] = [];
  for (const part of withoutRepetition(pending)) {
    for (const each of await settlePart(deliveries, part, session)) moved.push(each);
  }
  return moved;
}

/** Parts in which no delivery is reported twice: of one that is, the order matters. Nearly always a single one. */
function withoutRepetition(pending: readonly PendingReport[]): readonly (readonly PendingReport[])[] {
  const parts: PendingReport[][] = [[]];
  const ids = new Set<string>();
  for (const each of pending) {
    if (ids.has(each.report.id)) {
      ids.clear();
      parts.push([]);
    }
    ids.add(each.report.id);
    parts.at(-1)?.push(each);
  }
  return parts;
}

async function settlePart(
  deliveries: DeliveryCollections['deliveries'],
  pending: readonly PendingReport[],
  session?: ClientSession,
): Promise<readonly PendingReport[]> {
  const within = session === undefined ? {} : { session };
  const { together, oneByOne } = parted(pending);
  let matched = await recordSuccesses(deliveries, together, within);
  if (oneByOne.length > 0) {
    const writes = oneByOne.map((each) => writeOf(each, KEEPS_RECORD));
    matched += (await deliveries.bulkWrite(writes, { ordered: true, ...within })).matchedCount;
  }
  const moving = pending.filter(movesRun);
  if (matched === pending.length) return moving;
  await settleErased(deliveries, pending, within);
  await keepAttemptsUnderWay(deliveries, oneByOne, within);
  if (moving.length === 0) return moving;
  const ids = moving.map(({ report }) => report.id);
  const projection = { 'attempts.by': 1 };
  const found = await deliveries.find({ _id: { $in: ids } }, { projection, ...within }).toArray();
  const counted = new Set(found.flatMap(({ attempts }) => attempts.map(({ by }) => by.toHexString())));
  return moving.filter(({ by }) => counted.has(by.toHexString()));
}

/** Successes of one cycle, and the rest. */
function parted(pending: readonly PendingReport[]): {
  readonly together: readonly Success[];
  readonly oneByOne: readonly PendingReport[];
} {
  const together: Success[] = [];
  const oneByOne: PendingReport[] = [];
  for (const each of pending) {
    const { report, by } = each;
    const cycle = together[0]?.cycle;
    if (report.kind === 'delivered' && report.attempt.cycle === (cycle ?? report.attempt.cycle)) {
      const { id, attempt } = report;
      const stored = toAttemptDocument(attempt, by);
      together.push({ id, cycle: attempt.cycle, endedAtMs: endOf(attempt), attempt: stored });
    } else oneByOne.push(each);
  }
  return { together, oneByOne };
}

/**
 * An `updateMany`, though it names one id: the driver would have the server keep books of every `updateOne` to be
 * able to try it again, a tenth of the work, where the guards make a second report harmless.
 */
function writeOf(
  { report, by, nowMs }: PendingReport,
  guard: Filter<DeliveryDocument>,
): AnyBulkWriteOperation<DeliveryDocument> {
  const filter = { ...guardOf(report, readLease(report.lease).token), ...guard };
  return { updateMany: { filter, update: changeOf(report, by, nowMs), hint: '_id_' } };
}

/** Successes of deliveries whose records were emptied meanwhile: the only outcomes that still count for those. */
async function settleErased(
  deliveries: DeliveryCollections['deliveries'],
  pending: readonly PendingReport[],
  within: { readonly session?: ClientSession },
): Promise<void> {
  const writes = pending.flatMap(({ report, ...how }) => {
    if (report.kind !== 'delivered') return [];
    const kept = { ...report, attempt: attemptWithoutWords(report.attempt) };
    return [writeOf({ report: kept, ...how }, KEEPS_NO_RECORD)];
  });
  if (writes.length > 0) await deliveries.bulkWrite(writes, { ordered: true, ...within });
}

/**
 * Keeps the failed attempts that were under way when their deliveries ended for another reason. Their mark is a new
 * one: by that of their pending it would look as if they had counted.
 */
async function keepAttemptsUnderWay(
  deliveries: DeliveryCollections['deliveries'],
  pending: readonly PendingReport[],
  within: { readonly session?: ClientSession },
): Promise<void> {
  const writes = pending.flatMap(({ report }): AnyBulkWriteOperation<DeliveryDocument>[] => {
    const attempt = report.kind === 'retry' || report.kind === 'failed' ? report.attempt : null;
    if (attempt === null) return [];
    const { cycle, number } = attempt;
    const ended = { state: { $in: ['failed', 'withdrawn'] }, cycle, attempts_in_cycle: number - 1 } as const;
    const keep = (kept: Attempt, guard: Filter<DeliveryDocument>) => ({
      updateMany: {
        filter: { _id: report.id, ...ended, ...guard },
        update: attemptOf(kept, new ObjectId()),
        hint: '_id_',
      },
    });
    return [keep(attempt, KEEPS_RECORD), keep(attemptWithoutWords(attempt), KEEPS_NO_RECORD)];
  });
  if (writes.length > 0) await deliveries.bulkWrite(writes, { ordered: true, ...within });
}

/** A success counts while its cycle lasts, whoever claimed it since: the receiver has it. */
function guardOf(report: DeliveryReport, token: string): Filter<DeliveryDocument> {
  if (report.kind === 'delivered') {
    return { _id: report.id, state: { $ne: 'delivered' }, cycle: report.attempt.cycle };
  }
  return { _id: report.id, state: 'pending', lease: token };
}

function changeOf(report: DeliveryReport, by: ObjectId, nowMs: number): UpdateFilter<DeliveryDocument> {
  switch (report.kind) {
    case 'delivered': {
      const end = { state: 'delivered', reason: null, ended_at: endOf(report.attempt) } as const;
      return { $set: end, $unset: NO_MORE_DUE, ...attemptOf(report.attempt, by) };
    }
    case 'retry':
      return { $set: { due_at: report.dueAtMs }, $unset: { lease: '' }, ...attemptOf(report.attempt, by) };
    case 'failed': {
      const { attempt, reason } = report;
      const endedAtMs = attempt === null ? nowMs : endOf(attempt);
      const recorded = attempt === null ? {} : attemptOf(attempt, by);
      return { $set: { state: 'failed', reason, ended_at: endedAtMs }, $unset: NO_MORE_DUE, ...recorded };
    }
    case 'held':
      return { $set: { state: 'held' }, $unset: NO_MORE_DUE };
    case 'released':
      return { $set: { due_at: nowMs }, $unset: { lease: '' } };
    default:
      return report satisfies never;
  }
}

function attemptOf(attempt: Attempt, by: ObjectId): UpdateFilter<DeliveryDocument> {
  const newest = { $each: [toAttemptDocument(attempt, by)], $slice: -MAX_ATTEMPTS_KEPT };
  return { $inc: { attempts_in_cycle: 1 }, $push: { attempts: newest } };
}

/** The engine itself would take anything. */
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
