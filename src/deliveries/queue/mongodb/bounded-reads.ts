import type { Filter } from 'mongodb';
import {
  type BoundedPage,
  type BoundedPageOptions,
  type BoundedReads,
  type LaneAttempt,
  shortAnswer,
} from '../bounded-reads.ts';
import type { AttemptOutcome, DeliveryFilter } from '../delivery-queue.ts';
import type { AttemptDocument, DeliveryCollections, DeliveryDocument } from './collections.ts';
import { type SummaryDocument, toHealth, toSummary } from './documents.ts';
import { NEWEST_FIRST, olderThan, selectionOf } from './reader.ts';

type Condition = Filter<DeliveryDocument>;
type Use = <T>(work: (collections: DeliveryCollections) => Promise<T>) => Promise<T>;

/** What each index holds besides the time, by which it is ordered. */
const INDEXED: Readonly<Record<string, readonly string[]>> = {
  by_transaction: ['transaction_id'],
  by_state: ['state', 'prefix', 'account_id'],
  by_lane: ['prefix'],
  by_account: ['account_id'],
  by_time: [],
};

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
          deliveries.find(pendingOfLane, { hint: 'due_in_lane' }).sort({ due_at: 1 }).limit(1).next(),
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
  const older = after === undefined ? {} : await olderThan(deliveries, after);
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
  if (found.length > limit) return { deliveries: page, next: page.at(-1)?.id };
  const [last] = await deliveries
    .aggregate<{ _id: string }>([...read, { $skip: maxRead - 1 }, { $limit: 1 }, { $project: { _id: 1 } }], {
      hint,
    })
    .toArray();
  return { deliveries: page, next: last?._id };
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
