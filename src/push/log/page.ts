import type { Selection, Tables } from '../../tables/tables.ts';
import type { DeliveryFilter, DeliveryPage, DeliveryPlace, PageOptions } from '../queue/delivery-queue.ts';
import { blocksOf } from './changes.ts';
import { DELIVERIES, type DeliveryRow, LANES, owedOf, SOUGHT_STATES, summaryOf } from './tables.ts';
import { inParts } from './withdrawals.ts';

const MAX_BLOCK = 1_000;
/** More lanes than any account has. */
const ALL_LANES = 10_000;
/** Ids are read as one range of the index if it has at most this many ids for each one that is asked for. */
const MAX_SPREAD = 2;

type Part = Selection<typeof DELIVERIES>;

/** Reads a page by the index that leaves the least to read. Without `maxRead` it reads until the page is full. */
export async function readPage(
  tables: Tables,
  filter: DeliveryFilter,
  { limit, after, maxRead = Number.POSITIVE_INFINITY }: PageOptions,
): Promise<DeliveryPage> {
  const few = await fewOf(tables, filter, maxRead);
  if (few !== undefined) return sortedPage(tables, few, filter, { limit, after });
  const matches = matcherOf(filter);
  const part = await partByTime(tables, filter);
  if (part === undefined) return { deliveries: [], next: undefined };
  const found: DeliveryRow[] = [];
  let place = after;
  for (let left = maxRead; left > 0 && found.length <= limit; ) {
    const block = Math.min(left, MAX_BLOCK, Math.max(limit + 1, 100));
    const range = { from: filter.sinceMs, to: filter.untilMs };
    const rows = await tables.find(DELIVERIES, {
      ...part,
      range,
      descending: true,
      limit: block,
      after: place && { created_at: place.createdAtMs, owed: owedOf(place) },
    });
    for (const row of rows) if (matches(row)) found.push(row);
    place = placeOf(rows.at(-1)) ?? place;
    left -= rows.length;
    if (rows.length < block) {
      place = undefined;
      break;
    }
  }
  const deliveries = found.slice(0, limit).map(summaryOf);
  return { deliveries, next: found.length > limit ? deliveries.at(-1) : limit > 0 ? place : undefined };
}

/** The part of an index, in the order of time, that has all matching deliveries; `undefined` if there are none. */
async function partByTime(
  tables: Tables,
  { state, prefix, accountId }: DeliveryFilter,
): Promise<Part | undefined> {
  if (state !== undefined && SOUGHT_STATES.includes(state))
    return { index: 'by_state', equals: { sought_state: state } };
  if (prefix !== undefined) return { index: 'by_lane', equals: { prefix } };
  if (accountId === undefined) return { index: 'by_time' };
  const ofAccount = { index: 'of_account', equals: { account_id: accountId }, limit: ALL_LANES } as const;
  const lanes = await tables.find(LANES, { ...ofAccount, columns: ['prefix'] });
  if (lanes.length === 0) return undefined;
  return { index: 'by_lane', equals: { prefix: lanes.map((lane) => lane.prefix) } };
}

/** The parts of an index that have the deliveries of some transactions, or the pending ones if they are few: no index has these by time. */
async function fewOf(
  tables: Tables,
  { transactionIds, state, prefix, lanes }: DeliveryFilter,
  maxRead: number,
): Promise<readonly Part[] | undefined> {
  if (transactionIds !== undefined) return [...inParts(transactionIds)].map(partOf);
  if (state !== 'pending') return undefined;
  const prefixes = prefix === undefined && lanes?.areExcluded === false ? [...lanes.prefixes] : prefix;
  const pending: Part =
    prefixes === undefined
      ? { index: 'due', equals: { claimed: [0, 1] } }
      : { index: 'due_in_lane', equals: { prefix: prefixes } };
  const isWhole = maxRead === Number.POSITIVE_INFINITY;
  return isWhole || (await tables.count(DELIVERIES, pending, maxRead + 1)) <= maxRead ? [pending] : undefined;
}

/** Selects transactions: as the range from the first to the last if nearly all in between are asked for. */
function partOf(ids: readonly number[]): Part {
  const inOrder = ids.toSorted((a, b) => a - b);
  const [from = 0, to = 0] = [inOrder[0], inOrder.at(-1)];
  const isDense = to - from < MAX_SPREAD * inOrder.length;
  const which = isDense ? { range: { from, to } } : { equals: { transaction_id: inOrder } };
  return { index: 'by_transaction', ...which };
}

async function sortedPage(
  tables: Tables,
  parts: readonly Part[],
  filter: DeliveryFilter,
  { limit, after }: Pick<PageOptions, 'limit' | 'after'>,
): Promise<DeliveryPage> {
  const matches = matcherOf(filter);
  const found: DeliveryRow[] = [];
  for (const part of parts)
    for await (const block of blocksOf(tables, part))
      for (const row of block) if (matches(row)) found.push(row);
  const sorted = found.map(summaryOf).sort(newestFirst);
  const from = after === undefined ? sorted : sorted.filter((each) => newestFirst(after, each) < 0);
  const deliveries = from.slice(0, limit);
  return { deliveries, next: from.length > limit ? deliveries.at(-1) : undefined };
}

function matcherOf(filter: DeliveryFilter): (row: DeliveryRow) => boolean {
  const { transactionIds, state, prefix, lanes, accountId } = filter;
  const { sinceMs = -Infinity, untilMs = Infinity } = filter;
  const transactions = transactionIds && new Set(transactionIds);
  return (row) =>
    transactions?.has(row.transaction_id) !== false &&
    (state === undefined || row.state === state) &&
    (prefix === undefined || row.prefix === prefix) &&
    (lanes === undefined || lanes.prefixes.has(row.prefix) !== lanes.areExcluded) &&
    (accountId === undefined || row.account_id === accountId) &&
    row.created_at >= sinceMs &&
    row.created_at <= untilMs;
}

function placeOf(row: DeliveryRow | undefined): DeliveryPlace | undefined {
  return row && { createdAtMs: row.created_at, transactionId: row.transaction_id, prefix: row.prefix };
}

function newestFirst(a: DeliveryPlace, b: DeliveryPlace): number {
  if (a.createdAtMs !== b.createdAtMs) return b.createdAtMs - a.createdAtMs;
  const [one, other] = [owedOf(a), owedOf(b)];
  return other < one ? -1 : other > one ? 1 : 0;
}
