import type { Document, Filter } from 'mongodb';
import { shortAnswer } from '../../../push/queue/answer.ts';
import type {
  BoundedPage,
  BoundedPageOptions,
  BoundedReads,
  LaneAttempt,
} from '../../../push/queue/bounded-reads.ts';
import type {
  AttemptOutcome,
  Backlog,
  Delivery,
  DeliveryFilter,
  DeliveryPage,
  DeliveryPlace,
  DeliveryState,
  DeliverySummary,
  LoggedDelivery,
} from '../../../push/queue/delivery-queue.ts';
import type { AttemptDocument, DeliveryCollections, DeliveryDocument } from './collections.ts';
import { type SummaryDocument, toDelivery, toHealth, toSummary } from './documents.ts';

type Condition = Filter<DeliveryDocument>;
type Use = <T>(work: (collections: DeliveryCollections) => Promise<T>) => Promise<T>;

/** What each index of `selectionOf` holds besides the time, by which it is ordered. */
const INDEXED: Readonly<Record<string, readonly string[]>> = {
  by_transaction: ['transaction_id'],
  by_state: ['state', 'prefix', 'account_id'],
  by_lane: ['prefix'],
  by_account: ['account_id'],
  by_time: [],
};

const NEWEST_FIRST = { created_at: -1, _id: -1 } as const;

/** Selects a filter's deliveries by the index that leaves the least to read and needs no sorting. */
export function selectionOf(filter: DeliveryFilter): { readonly where: Condition; readonly hint: string } {
  const { transactionId, state, prefix, accountId, sinceMs, untilMs } = filter;
  const where: Condition = {
    ...(transactionId === undefined ? {} : { transaction_id: transactionId }),
    ...(state === undefined ? {} : { state }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(accountId === undefined ? {} : { account_id: accountId }),
    ...(sinceMs === undefined && untilMs === undefined
      ? {}
      : { created_at: { $gte: sinceMs ?? 0, $lte: untilMs ?? Number.MAX_SAFE_INTEGER } }),
  };
  return { where, hint: indexOf(filter) };
}

function indexOf({ transactionId, state, prefix, accountId }: DeliveryFilter): string {
  if (transactionId !== undefined) return 'by_transaction';
  if (state !== undefined && state !== 'delivered') return 'by_state';
  if (prefix !== undefined) return 'by_lane';
  return accountId === undefined ? 'by_time' : 'by_account';
}

/** In order. One index search for each account, however many deliveries it has. */
export async function heldAccounts({ deliveries }: DeliveryCollections): Promise<number[]> {
  const accounts = deliveries.aggregate<{ _id: number }>(heldAccountsPipeline(), { hint: 'held' });
  return (await accounts.toArray()).map(({ _id }) => _id).sort((a, b) => a - b);
}

export function heldAccountsPipeline(): Document[] {
  return [
    { $match: { state: 'held' } },
    { $sort: { state: 1, account_id: 1 } },
    { $group: { _id: '$account_id' } },
  ];
}

export async function findDelivery(
  { deliveries }: DeliveryCollections,
  id: string,
): Promise<Delivery | undefined> {
  const document = await deliveries.findOne({ _id: id });
  return document === null ? undefined : toDelivery(document);
}

export async function listDeliveries(
  { deliveries }: DeliveryCollections,
  filter: DeliveryFilter,
  { limit, after }: DeliveryPage,
): Promise<readonly DeliverySummary[]> {
  if (limit <= 0) return []; // to MongoDB it would mean no limit
  const { where, hint } = selectionOf(filter);
  const older = after === undefined ? {} : olderThan(after);
  const page = await deliveries
    .find({ $and: [where, older] }, { projection: { record: 0, attempts: 0 }, hint })
    .sort(NEWEST_FIRST)
    .limit(limit)
    .toArray();
  return page.map(toSummary);
}

export async function countByState(
  { deliveries }: DeliveryCollections,
  filter: DeliveryFilter,
): Promise<Readonly<Record<DeliveryState, number>>> {
  const counts = { pending: 0, held: 0, delivered: 0, failed: 0, withdrawn: 0 };
  const { where, hint } = selectionOf(filter);
  const pipeline = [{ $match: where }, { $group: { _id: '$state', count: { $sum: 1 } } }];
  const groups = deliveries.aggregate<{ _id: DeliveryState; count: number }>(pipeline, { hint });
  for (const { _id, count } of await groups.toArray()) counts[_id] = count;
  return counts;
}

export async function backlog({ deliveries, lanes }: DeliveryCollections, limit: number): Promise<Backlog> {
  const [pending, held, failingLanes] = await Promise.all([
    deliveries.countDocuments({ state: 'pending' }, { limit, hint: 'due_in_lane' }),
    deliveries.countDocuments({ state: 'held' }, { limit, hint: 'held' }),
    lanes.countDocuments({ failed_in_a_row: { $gt: 0 } }, { limit, hint: 'failing' }),
  ]);
  return { pending, held, failingLanes };
}

export async function deliveriesOfTransactions(
  { deliveries }: DeliveryCollections,
  transactionIds: readonly number[],
): Promise<LoggedDelivery[]> {
  const projection = { prefix: 1, account_id: 1, transaction_id: 1, state: 1, recorded_at: 1 };
  const found = deliveries.find(
    { transaction_id: { $in: [...transactionIds] } },
    { projection, hint: 'by_transaction' },
  );
  return (await found.toArray()).map((document) => ({
    id: document._id,
    prefix: document.prefix,
    accountId: document.account_id,
    transactionId: document.transaction_id,
    state: document.state,
    recordedAtMs: document.recorded_at,
  }));
}

/** By the index alone. A transaction has an entry for each delivery: the ids are fewer than the entries read. */
export async function transactionsAfter(
  { deliveries }: DeliveryCollections,
  afterId: number,
  limit: number,
): Promise<number[]> {
  if (limit <= 0) return []; // to MongoDB it would mean no limit
  const found = deliveries.find(
    { transaction_id: { $gt: afterId } },
    { projection: { _id: 0, transaction_id: 1 }, hint: 'by_transaction' },
  );
  const entries = await found.sort({ transaction_id: 1 }).limit(limit).toArray();
  return [...new Set(entries.map(({ transaction_id }) => transaction_id))];
}

/** Older than a delivery, or as old with a lesser id; decided by the index alone. */
function olderThan({ createdAtMs: at, id }: DeliveryPlace): Condition {
  return { created_at: { $lte: at }, $or: [{ created_at: { $lt: at } }, { _id: { $lt: id } }] };
}

export function mongoBoundedReads(use: Use): BoundedReads {
  return {
    page: (filter, options) => use((collections) => readPage(collections, filter, options)),
    failingLanes: (limit) =>
      use(async ({ lanes }) => {
        const failing = lanes.find({ failed_in_a_row: { $gt: 0 } }, { hint: 'failing' });
        const longest = await failing.sort({ failed_in_a_row: -1 }).limit(limit).toArray();
        return longest.map((lane) => ({ prefix: lane._id, ...toHealth(lane) }));
      }),
    attempts: (prefix, limits) => use((collections) => readAttempts(collections, prefix, limits)),
    laneBacklog: (prefix, limit) =>
      use(async ({ deliveries }) => {
        const pendingOfLane = { state: 'pending', prefix } as const;
        const [pending, held, first] = await Promise.all([
          deliveries.countDocuments(pendingOfLane, { limit, hint: 'due_in_lane' }),
          deliveries.countDocuments({ state: 'held', prefix }, { limit, hint: 'held_in_lane' }),
          deliveries
            .find(pendingOfLane, { hint: 'due_in_lane', projection: { due_at: 1 } })
            .sort({ due_at: 1 })
            .limit(1)
            .next(),
        ]);
        return { pending, held, nextDueAtMs: first?.due_at };
      }),
  };
}

async function readPage(
  { deliveries }: DeliveryCollections,
  filter: DeliveryFilter,
  { limit, after, maxRead }: BoundedPageOptions,
): Promise<BoundedPage> {
  const { where, hint } = selectionOf(filter);
  const isIndexed = (field: string): boolean =>
    field === 'created_at' || INDEXED[hint]?.includes(field) === true;
  const conditions = Object.entries(where);
  const inIndex: Condition = Object.fromEntries(conditions.filter(([field]) => isIndexed(field)));
  const rest: Condition = Object.fromEntries(conditions.filter(([field]) => !isIndexed(field)));
  const older = after === undefined ? {} : olderThan(after);
  const read = [{ $match: { $and: [inIndex, older] } }, { $sort: NEWEST_FIRST }];
  const found = await deliveries
    .aggregate<SummaryDocument>(
      [
        ...read,
        { $limit: maxRead },
        { $match: rest },
        { $limit: limit + 1 },
        { $project: { record: 0, attempts: 0 } },
      ],
      { hint },
    )
    .toArray();
  const page = found.slice(0, limit).map(toSummary);
  if (found.length > limit) return { deliveries: page, next: page.at(-1) };
  const [last] = await deliveries
    .aggregate<Pick<DeliveryDocument, '_id' | 'created_at'>>(
      [...read, { $skip: maxRead - 1 }, { $limit: 1 }, { $project: { created_at: 1 } }],
      { hint },
    )
    .toArray();
  return { deliveries: page, next: last && { createdAtMs: last.created_at, id: last._id } };
}

async function readAttempts(
  { deliveries }: DeliveryCollections,
  prefix: string,
  limits: { readonly deliveries: number; readonly maxRead: number },
): Promise<readonly LaneAttempt[]> {
  const attempted = await deliveries
    .aggregate<{ readonly _id: string; readonly attempts: readonly AttemptDocument[] }>(
      [
        { $match: { prefix } },
        { $sort: NEWEST_FIRST },
        { $limit: limits.maxRead },
        { $match: { $or: [{ attempts_in_cycle: { $gt: 0 } }, { cycle: { $gt: 1 } }] } },
        { $limit: limits.deliveries },
        { $project: { attempts: 1 } },
      ],
      { hint: 'by_lane' },
    )
    .toArray();
  return attempted
    .flatMap(({ _id, attempts }) => attempts.map((attempt) => toLaneAttempt(_id, attempt)))
    .sort((a, b) => a.startedAtMs - b.startedAtMs);
}

function toLaneAttempt(deliveryId: string, { started_at, duration, outcome }: AttemptDocument): LaneAttempt {
  const parsed = JSON.parse(outcome) as AttemptOutcome;
  return {
    deliveryId,
    startedAtMs: started_at,
    durationMs: duration,
    ok: parsed.ok,
    answer: shortAnswer(parsed),
  };
}
