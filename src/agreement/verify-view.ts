import { setTimeout as sleep } from 'node:timers/promises';
import {
  type RowState,
  stateAfter,
  type TransactionRow,
  transition,
  VISIBLE_STATUSES,
} from '../../projections/transactions.ts';
import { TRANSACTION_STREAMS, transactionIdOf, transactionStream } from '../domain/transaction-events.ts';
import { parseDateTime } from '../domain/values/date-time.ts';
import { sameJson } from '../domain/values/same-json.ts';
import { recordedAt } from '../event-store/codec.ts';
import type { EventStore, Position, RecordedEvent } from '../event-store/event-store.ts';
import { readInParts } from '../event-store/read-in-parts.ts';
import { readToEnd } from '../event-store/read-to-end.ts';
import { projectEvent } from '../transactions/project-event.ts';
import type { Place, TransactionsView } from '../transactions/view/transactions-view.ts';

const PAGE = 500;
/** What was recorded a moment ago may be on its way into the view: it gets this long before it counts. */
const SETTLE_MS = 1_000;
const EARLIEST_MS = -8_640_000_000_000_000;
const LATEST_MS = 8_640_000_000_000_000;

export interface VerifyViewOptions {
  readonly store: EventStore;
  readonly view: TransactionsView;
  /** Accounts beside those that the events name, whose pages are read for what no event calls for. */
  readonly accountIds: Iterable<number>;
  /** Judge this account only. */
  readonly accountId?: number | undefined;
  /** When the transaction was recorded, milliseconds; both inclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  readonly settleMs?: number;
  readonly onProgress?: (checked: number) => void;
}

export interface ViewDifference {
  readonly transactionId: number;
  /** Shown by the events and not by the view, the reverse, or shown otherwise. */
  readonly kind: 'missing' | 'surplus' | 'differing';
}

export interface ViewAgreement {
  /** Transactions held against the view. */
  readonly checked: number;
  readonly differences: readonly ViewDifference[];
  /** How far the view has read the log: what comes behind it is late, and no difference. */
  readonly upTo: Position;
}

/**
 * Holds the view against what the events render to, transaction by transaction, and the pages of every account
 * against the events. What differs is looked at once more after a second, since the view follows the log; what the
 * view has not reached by then is not judged.
 */
export async function verifyView(options: VerifyViewOptions): Promise<ViewAgreement> {
  const { store, view, settleMs } = options;
  const { checked, shown, accounts, suspects } = await compareStreams(options);
  for (const accountId of accountsToPage(options, accounts)) {
    for await (const id of idsOnPages(view, accountId)) if (!shown.has(id)) suspects.add(id);
  }
  if (suspects.size > 0) await sleep(settleMs ?? SETTLE_MS);
  const upTo = (await view.checkpoint())?.position ?? 0;
  const differences: ViewDifference[] = [];
  for (const transactionId of suspects) {
    const kind = await differenceOf(transactionId, { store, view, upTo });
    if (kind !== undefined && (await isAskedFor(transactionId, options)))
      differences.push({ transactionId, kind });
  }
  return { checked, differences, upTo };
}

/** Puts what the events render to in the view, for the transactions that differ. Says how many differ still. */
export async function repairView(
  differences: readonly ViewDifference[],
  { store, view }: { readonly store: EventStore; readonly view: TransactionsView },
): Promise<readonly ViewDifference[]> {
  const remaining: ViewDifference[] = [];
  for (const difference of differences) {
    const { transactionId } = difference;
    const stream = transactionStream(transactionId);
    if (await store.isErased(stream)) await view.erase(transactionId);
    else await view.replace(transactionId, (await store.readStream(stream)).map(projectEvent));
    if ((await differenceOf(transactionId, { store, view })) !== undefined) remaining.push(difference);
  }
  return remaining;
}

/** Reads each stream once, at its first event, and compares what it folds to with the row. */
async function compareStreams(options: VerifyViewOptions) {
  const { store, view, onProgress } = options;
  const shown = new Set<number>();
  const accounts = new Set<number>();
  const suspects = new Set<number>();
  let checked = 0;
  const log = { prefixes: [TRANSACTION_STREAMS], after: 0, batchSize: PAGE };
  for await (const { events } of readToEnd(store, log)) {
    const first = new Map(
      events.filter(({ revision }) => revision === 0).map((event) => [event.stream, event]),
    );
    for await (const [stream, history] of readInParts(store, [...first.keys()])) {
      const event = first.get(stream) as RecordedEvent;
      const row = rowOf(history);
      if (row !== undefined) {
        shown.add(row.id);
        accounts.add(row.accountId);
      }
      if (!fits(event, options)) continue;
      checked += 1;
      const id = transactionIdOf(event.stream);
      if (id !== undefined && compare(row, await view.find(id)) !== undefined) suspects.add(id);
    }
    onProgress?.(checked);
  }
  return { checked, shown, accounts, suspects };
}

async function differenceOf(
  transactionId: number,
  {
    store,
    view,
    upTo = Infinity,
  }: { readonly store: EventStore; readonly view: TransactionsView; readonly upTo?: Position },
): Promise<ViewDifference['kind'] | undefined> {
  const history = await store.readStream(transactionStream(transactionId));
  if (history.some(({ position }) => position > upTo)) return undefined;
  return compare(rowOf(history), await view.find(transactionId));
}

function compare(
  expected: TransactionRow | undefined,
  found: TransactionRow | 'hidden' | undefined,
): ViewDifference['kind'] | undefined {
  const shown = found === 'hidden' ? undefined : found;
  if (expected === undefined) return shown === undefined ? undefined : 'surplus';
  if (shown === undefined) return 'missing';
  return sameJson(expected, shown) ? undefined : 'differing';
}

/** What a transaction's events leave to be shown; what can't follow is parked, here as in the view. */
function rowOf(history: readonly RecordedEvent[]): TransactionRow | undefined {
  let state: RowState | undefined;
  let row: TransactionRow | undefined;
  for (const event of history) {
    const projected = projectEvent(event);
    if ('parkReason' in projected || transition(state, projected.change) !== 'apply') continue;
    const { change } = projected;
    row = change.kind === 'show' ? change.row : undefined;
    state = stateAfter(change);
  }
  return row;
}

function accountsToPage({ accountId, accountIds }: VerifyViewOptions, named: Set<number>): Set<number> {
  return accountId === undefined ? named.union(new Set(accountIds)) : new Set([accountId]);
}

async function* idsOnPages(view: TransactionsView, accountId: number): AsyncGenerator<number> {
  let after: Place | undefined;
  for (;;) {
    const range = { fromMs: EARLIEST_MS, toMs: LATEST_MS - 1 };
    const page = await view.page({ accountId, ...range, statuses: VISIBLE_STATUSES, after, limit: PAGE });
    for (const row of page.rows) yield row.id;
    after = page.rows.at(-1);
    if (!page.hasMore) return;
  }
}

/** A row that no event calls for belongs to no time: it is told whatever range was asked for. */
async function isAskedFor(transactionId: number, options: VerifyViewOptions): Promise<boolean> {
  const [first] = await options.store.readStream(transactionStream(transactionId));
  return first === undefined || fits(first, options);
}

function fits(event: RecordedEvent, { accountId, sinceMs, untilMs }: VerifyViewOptions): boolean {
  const named = (event.data as { readonly account_id?: unknown } | null)?.account_id;
  if (accountId !== undefined && named !== accountId) return false;
  const recordedAtMs = parseDateTime(recordedAt(event)) ?? event.recordedAtMs;
  return (sinceMs ?? EARLIEST_MS) <= recordedAtMs && recordedAtMs <= (untilMs ?? LATEST_MS);
}
