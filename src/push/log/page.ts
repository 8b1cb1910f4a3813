import type { Selection, Tables } from '../../tables/tables.ts';
import type { DeliveryFilter, DeliveryPage, DeliveryPlace, PageOptions } from '../queue/delivery-queue.ts';
import { blocksOf } from './changes.ts';
import { DELIVERIES, type DeliveryRow, LANES, owedOf, SOUGHT_STATES, summaryOf } from './tables.ts';

const MAX_BLOCK = 1_000;
/** More than an account has keys. */
const ALL_LANES = 10_000;

type Part = Selection<typeof DELIVERIES>;

/**
 * The deliveries of a filter, newest first, by the index that leaves the least to read. Without `maxRead` it reads until the
 * page is full.
 */
export async function readPage(
  tables: Tables,
  filter: DeliveryFilter,
  { limit, after, maxRead = Number.POSITIVE_INFINITY }: PageOptions,
): Promise<DeliveryPage> {
  const few = await fewOf(tables, filter, maxRead);
  if (few !== undefined) return sortedPage(tables, few, filter, { limit, after });
  const part = await partByTime(tables, filter);
  const found: DeliveryRow[] = [];
  let place = after;
  for (let left = part === undefined ? 0 : maxRead; left > 0 && found.length <= limit; ) {
    const block = Math.min(left, MAX_BLOCK, Math.max(limit + 1, 100));
    const range = { from: filter.sinceMs, to: filter.untilMs };
    const rows = await tables.find(DELIVERIES, {
      ...{ ...(part as Part), range, descending: true, limit: block },
      after: place && { created_at: place.createdAtMs, owed: owedOf(place) },
    });
    for (const row of rows) if (matches(row, filter)) found.push(row);
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

/** The part of an index in the order of time that has them all; `undefined`: there is none. */
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

/** Those of a transaction, and pending ones where they are few: no index has them by their time. */
async function fewOf(
  tables: Tables,
  { transactionId, state, prefix }: DeliveryFilter,
  maxRead: number,
): Promise<Part | undefined> {
  if (transactionId !== undefined)
    return { index: 'by_transaction', equals: { transaction_id: transactionId } };
  if (state !== 'pending') return undefined;
  const pending: Part =
    prefix === undefined
      ? { index: 'due', equals: { claimed: [0, 1] } }
      : { index: 'due_in_lane', equals: { prefix } };
  const isWhole = maxRead === Number.POSITIVE_INFINITY;
  return isWhole || (await tables.count(DELIVERIES, pending, maxRead + 1)) <= maxRead ? pending : undefined;
}

async function sortedPage(
  tables: Tables,
  part: Part,
  filter: DeliveryFilter,
  { limit, after }: Pick<PageOptions, 'limit' | 'after'>,
): Promise<DeliveryPage> {
  const found: DeliveryRow[] = [];
  for await (const block of blocksOf(tables, part))
    for (const row of block) if (matches(row, filter)) found.push(row);
  const sorted = found.map(summaryOf).sort(newestFirst);
  const from = after === undefined ? sorted : sorted.filter((each) => newestFirst(after, each) < 0);
  const deliveries = from.slice(0, limit);
  return { deliveries, next: from.length > limit ? deliveries.at(-1) : undefined };
}

function matches(row: DeliveryRow, filter: DeliveryFilter): boolean {
  const { transactionId, state, prefix, accountId, sinceMs = -Infinity, untilMs = Infinity } = filter;
  return (
    (transactionId === undefined || row.transaction_id === transactionId) &&
    (state === undefined || row.state === state) &&
    (prefix === undefined || row.prefix === prefix) &&
    (accountId === undefined || row.account_id === accountId) &&
    row.created_at >= sinceMs &&
    row.created_at <= untilMs
  );
}

function placeOf(row: DeliveryRow | undefined): DeliveryPlace | undefined {
  return row && { createdAtMs: row.created_at, transactionId: row.transaction_id, prefix: row.prefix };
}

function newestFirst(a: DeliveryPlace, b: DeliveryPlace): number {
  const [one, other] = [owedOf(a), owedOf(b)];
  return b.createdAtMs - a.createdAtMs || (other < one ? -1 : other > one ? 1 : 0);
}
