import type { TransactionRow } from '../../../projections/transactions.ts';
import { TRANSACTION_STREAMS, transactionIdOf, transactionStream } from '../../domain/transaction-events.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { membersOf, recordedAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readOperations } from '../../event-store/operations.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { listPages } from '../../pull/view/list-rows.ts';
import {
  inListOrder,
  isAskedFor,
  type PageQuery,
  type ViewReads,
} from '../../pull/view/transactions-view.ts';
import { effectsOf, rowAt } from '../answers/timeline.ts';

const PAGE = 100;
const BACKWARDS_STEP = 500;
/** By how much the clock of a machine that records may be before the store's. */
const CLOCKS_APART_MS = DAY_MS;

export interface PastQuery extends PageQuery {
  /** What customers saw at this time. */
  readonly atMs: number;
  /** What the query does not say, such as a number plate. */
  readonly isWanted: (row: TransactionRow) => boolean;
}

export interface PastParts {
  readonly store: Pick<EventStore, 'readBackwards' | 'readStreams'>;
  readonly view: Pick<ViewReads, 'page'>;
  /** Events that were recorded since. */
  readonly onProgress: (events: number) => void;
}

/**
 * An account's rows as the view showed them at a time, newest first. Most are listed still: the view has them, and their events
 * say what they were. What is not listed any more, or elsewhere, is found by the events that were recorded since. Of these
 * rows the first `limit` are kept, of the others a page is in memory. Nothing is known of what was erased.
 */
export async function* rowsAt(query: PastQuery, parts: PastParts): AsyncGenerator<TransactionRow> {
  const moved = await movedSince(query, parts);
  for await (const row of listedStill(query, parts)) {
    for (let next = moved[0]; next !== undefined && inListOrder(next, row) <= 0; next = moved[0]) {
      moved.shift();
      if (next.id !== row.id) yield next; // the view has not applied yet what moved it
    }
    yield row;
  }
  yield* moved;
}

async function* listedStill(query: PastQuery, { store, view }: PastParts): AsyncGenerator<TransactionRow> {
  for await (const rows of listPages(view, query, PAGE)) {
    const histories = await store.readStreams(rows.map(({ id }) => transactionStream(id)));
    for (const [index, row] of rows.entries()) {
      const past = rowAt(effectsOf(histories[index] ?? []), query.atMs);
      if (past !== undefined && inListOrder(past, row) === 0 && matches(past, query)) yield past;
    }
  }
}

/** The first `limit` rows of then that the same query does not list now. */
async function movedSince(query: PastQuery, parts: PastParts): Promise<TransactionRow[]> {
  const { atMs, limit } = query;
  const kept = new Map<number, TransactionRow>();
  for await (const ids of changedSince(query, parts)) {
    for (const events of await parts.store.readStreams(ids.map(transactionStream))) {
      const applied = effectsOf(events);
      const [past, present] = [rowAt(applied, atMs), applied.at(-1)?.row];
      if (past === undefined || !matches(past, query)) continue;
      const isListed = present !== undefined && inListOrder(present, past) === 0 && matches(present, query);
      if (!isListed) kept.set(past.id, past);
    }
    for (const { id } of [...kept.values()].sort(inListOrder).slice(limit)) kept.delete(id);
  }
  return [...kept.values()].sort(inListOrder);
}

/** The account's transactions that were there before, and got an event since; some at a time, and perhaps more than once. */
async function* changedSince(
  { accountId, atMs }: PastQuery,
  { store, onProgress }: PastParts,
): AsyncGenerator<readonly number[]> {
  let before: Position | undefined;
  for (let read = 0; ; ) {
    const range = { prefixes: [TRANSACTION_STREAMS], before, limit: BACKWARDS_STEP };
    const { events, position, atStart } = await store.readBackwards(range);
    const isChange = (event: RecordedEvent): boolean =>
      event.revision > 0 && membersOf(event.data).account_id === accountId && recordedAtMs(event) > atMs;
    const ids = events.filter(isChange).map(({ stream }) => transactionIdOf(stream) ?? 0);
    if (ids.length > 0) yield [...new Set(ids)];
    read += events.length;
    onProgress(read);
    const oldest = events.at(-1);
    if (atStart || (oldest !== undefined && oldest.recordedAtMs < atMs - CLOCKS_APART_MS)) return;
    before = position;
  }
}

/** How many of the account's transactions were erased since: whether they were there then is not known any more. */
export async function erasedSince(
  store: Pick<EventStore, 'readStream'>,
  accountId: number,
  atMs: number,
): Promise<number> {
  const operations = await readOperations(store);
  return operations.filter(
    ({ type, data, recorded }) =>
      type === 'TransactionErased' && data.account_id === accountId && recordedAtMs(recorded) > atMs,
  ).length;
}

function matches(row: TransactionRow, query: PastQuery): boolean {
  return isAskedFor(row, query) && query.isWanted(row);
}
