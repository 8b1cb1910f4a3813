import { randomUUID } from 'node:crypto';
import type { Filter } from 'mongodb';
import type { Clock } from '../../../base/clock.ts';
import type {
  Backlog,
  DeliveryFilter,
  DeliveryPage,
  DeliveryPlace,
  DeliveryReads,
  LaneReads,
  PageOptions,
} from '../../../push/queue/delivery-reads.ts';
import { healthy } from '../../../push/queue/failure-streak.ts';
import {
  StoredBatch,
  toDelivery,
  toLaneAttempt,
  toLogged,
  toStoredDelivery,
  toSummary,
} from '../../stored/delivery.ts';
import { type Condition, selectionOf } from '../../stored/delivery-index.ts';
import {
  type DeliveryCollections,
  type DeliveryDocument,
  insertMissing,
  LONG_QUERY_MS,
  type LogDocument,
  NOT_DELIVERED,
  type Use,
} from './collections.ts';
import { rowOf, toHealth } from './documents.ts';

const BATCH = 500;
const NEWEST_FIRST = { created_at: -1, _id: -1 } as const;
const OPERATORS = { '=': '$eq', '>=': '$gte', '<=': '$lte' } as const;

type Where = Filter<DeliveryDocument>;

export function mongoReads(use: Use, clock: Clock): DeliveryReads {
  return {
    /** The same for processes that ask at once. */
    logId: () =>
      use(async ({ log }) => {
        await insertMissing(log, [{ _id: 'log', id: randomUUID(), started_at: clock.now() }]);
        const { id, started_at } = (await log.findOne({ _id: 'log' })) as LogDocument;
        return { id, startedAtMs: started_at };
      }),
    find: (id) =>
      use(async ({ deliveries }) => {
        const document = await deliveries.findOne({ _id: id });
        return document === null ? undefined : toDelivery(...rowsOf(document));
      }),
    page: (filter, options) => use((collections) => readPage(collections, filter, options), LONG_QUERY_MS),
    ofTransactions: (transactionIds) =>
      use(async ({ deliveries }) => {
        const projection = {
          prefix: 1,
          account_id: 1,
          transaction_id: 1,
          state: 1,
          cycle: 1,
          recorded_at: 1,
        };
        const isOfThese = { transaction_id: { $in: [...transactionIds] } };
        const found = deliveries.find(isOfThese, { projection, hint: 'by_transaction' });
        return (await found.toArray()).map((document) => toLogged(rowOf(document)));
      }, LONG_QUERY_MS),
    /** By the index alone. A transaction has an entry for each delivery: the ids are fewer than the entries read. */
    transactionsAfter: (afterId, limit) =>
      use(async ({ deliveries }) => {
        if (limit <= 0) return []; // to MongoDB it would mean no limit
        const projection = { _id: 0, transaction_id: 1 };
        const found = deliveries.find(
          { transaction_id: { $gt: afterId } },
          { projection, hint: 'by_transaction' },
        );
        const entries = await found.sort({ transaction_id: 1 }).limit(limit).toArray();
        return [...new Set(entries.map(({ transaction_id }) => transaction_id))];
      }, LONG_QUERY_MS),
    storedAfter: (transactionId) =>
      use(async ({ deliveries }) => {
        const batch = new StoredBatch();
        const later = deliveries.find({ transaction_id: { $gt: transactionId } }, { hint: 'by_transaction' });
        for await (const document of later.sort({ transaction_id: 1 }).batchSize(BATCH)) {
          if (!batch.take(toStoredDelivery(...rowsOf(document)))) break;
        }
        return batch.deliveries;
      }, LONG_QUERY_MS),
    withdrawnAfter: (transactionId) =>
      use(async ({ withdrawals }) => {
        const batch = withdrawals
          .find({ _id: { $gt: transactionId } })
          .sort({ _id: 1 })
          .limit(BATCH);
        return (await batch.toArray()).map(({ _id }) => _id);
      }, LONG_QUERY_MS),
  };
}

export function mongoLaneReads(use: Use): LaneReads {
  return {
    health: (prefix) =>
      use(async ({ lanes }) => {
        const lane = await lanes.findOne({ _id: prefix });
        return lane === null ? healthy() : toHealth(lane);
      }),
    failingLanes: (limit) =>
      use(async ({ lanes }) => {
        const failing = lanes.find({ failed_in_a_row: { $gt: 0 } }, { hint: 'failing' });
        const longest = await failing.sort({ failed_in_a_row: -1 }).limit(limit).toArray();
        return longest.map((lane) => ({ prefix: lane._id, ...toHealth(lane) }));
      }),
    attempts: (prefix, limits) =>
      use(async ({ deliveries }) => {
        const attempted = deliveries.aggregate<Pick<DeliveryDocument, '_id' | 'attempts'>>(
          [
            { $match: { prefix } },
            { $sort: NEWEST_FIRST },
            { $limit: limits.maxRead },
            { $match: { $or: [{ attempts_in_cycle: { $gt: 0 } }, { cycle: { $gt: 1 } }] } },
            { $limit: limits.deliveries },
            { $project: { attempts: 1 } },
          ],
          { hint: 'by_lane' },
        );
        return (await attempted.toArray())
          .flatMap(({ _id, attempts }) => attempts.map((attempt) => toLaneAttempt(_id, { ...attempt })))
          .sort((a, b) => a.startedAtMs - b.startedAtMs);
      }),
    backlog: (limit, prefix) => use((collections) => backlog(collections, limit, prefix), LONG_QUERY_MS),
  };
}

async function backlog(
  { deliveries, lanes }: DeliveryCollections,
  limit: number,
  prefix?: string,
): Promise<Backlog> {
  const isAll = prefix === undefined;
  const pendingIn = isAll ? { state: 'pending' as const } : { state: 'pending' as const, prefix };
  const heldIn = isAll ? { state: 'held' as const } : { state: 'held' as const, prefix };
  const failingIn = { failed_in_a_row: { $gt: 0 }, ...(isAll ? {} : { _id: prefix }) };
  const first = deliveries.find(isAll ? { due_at: { $gt: -1 } } : pendingIn, {
    hint: isAll ? 'due' : 'due_in_lane',
    projection: { due_at: 1 },
  });
  const [pending, held, failingLanes, [due]] = await Promise.all([
    deliveries.countDocuments(pendingIn, { limit, hint: 'due_in_lane' }),
    deliveries.countDocuments(heldIn, { limit, hint: isAll ? 'held' : 'held_in_lane' }),
    lanes.countDocuments(failingIn, { limit, hint: isAll ? 'failing' : '_id_' }),
    first.sort({ due_at: 1 }).limit(1).toArray(),
  ]);
  return { pending, held, failingLanes, nextDueAtMs: due?.due_at };
}

async function readPage(
  { deliveries }: DeliveryCollections,
  filter: DeliveryFilter,
  { limit, after, maxRead = Infinity }: PageOptions,
): Promise<DeliveryPage> {
  const { index: hint, inIndex, others } = selectionOf(filter, NOT_DELIVERED);
  const read = [{ $match: whereOf(inIndex, after) }, { $sort: NEWEST_FIRST }];
  const found = await deliveries
    .aggregate<DeliveryDocument>(
      [
        ...read,
        ...(maxRead === Infinity ? [] : [{ $limit: maxRead }]),
        { $match: whereOf(others) },
        { $limit: limit + 1 },
        { $project: { record: 0, attempts: 0 } },
      ],
      { hint },
    )
    .toArray();
  const page = found.slice(0, limit).map((document) => toSummary(rowOf(document)));
  if (found.length > limit || maxRead === Infinity)
    return { deliveries: page, next: found.length > limit ? page.at(-1) : undefined };
  const [last] = await deliveries
    .aggregate<Pick<DeliveryDocument, '_id' | 'created_at'>>(
      [...read, { $skip: maxRead - 1 }, { $limit: 1 }, { $project: { created_at: 1 } }],
      { hint },
    )
    .toArray();
  return { deliveries: page, next: last && { createdAtMs: last.created_at, id: last._id } };
}

/** Older than a place: as old with a lesser id counts. */
export function whereOf(conditions: readonly Condition[], after?: DeliveryPlace): Where {
  const all: Where[] = conditions.map(({ field, is, value }) => ({ [field]: { [OPERATORS[is]]: value } }));
  if (after !== undefined) {
    const { createdAtMs: at, id } = after;
    all.push({ created_at: { $lte: at }, $or: [{ created_at: { $lt: at } }, { _id: { $lt: id } }] });
  }
  return { $and: [{}, ...all] };
}

function rowsOf(document: DeliveryDocument): Parameters<typeof toDelivery> {
  return [rowOf(document), { ...document.record }, document.attempts.map((attempt) => ({ ...attempt }))];
}
