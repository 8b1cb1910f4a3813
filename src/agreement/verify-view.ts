import { setTimeout as sleep } from 'node:timers/promises';
import {
  type RowState,
  stateAfter,
  type TransactionRow,
  transition,
  VISIBLE_STATUSES,
} from '../../projections/transactions.ts';
import { TRANSACTION_STREAMS, transactionIdOf, transactionStream } from '../domain/transaction-events.ts';
import { sameJson } from '../domain/values/same-json.ts';
import type { EventStore, Position, RecordedEvent } from '../event-store/event-store.ts';
import { readInParts } from '../event-store/read-in-parts.ts';
import { readToEnd } from '../event-store/read-to-end.ts';
import { projectEvent } from '../transactions/project-event.ts';
import type { Place, TransactionsView } from '../transactions/view/transactions-view.ts';
import { isInScope, SETTLE_MS, type VerifyScope } from './scope.ts';

const PAGE = 500;
const EARLIEST_MS = -8_640_000_000_000_000;
const LATEST_MS = 8_640_000_000_000_000;

export interface VerifyViewOptions extends VerifyScope {
  readonly store: EventStore;
  readonly view: TransactionsView;
  /** Accounts besides those in the events, whose pages are searched for rows without events. */
  readonly accountIds: Iterable<number>;
  readonly settleMs?: number;
  readonly onProgress?: (checked: number) => void;
}

export interface ViewDifference {
  readonly transactionId: number;
  /** Not shown, though the events call for it; shown, though they do not; or shown with other content. */
  readonly kind: 'missing' | 'surplus' | 'differing';
}

export interface ViewAgreement {
  /** Transactions compared. */
  readonly checked: number;
  readonly differences: readonly ViewDifference[];
  /** How far the view has read the log: later events are not judged. */
  readonly upTo: Position;
}

/**
 * Compares the view with what the events render to, transaction by transaction, and the pages of every account with
 * the events. What differs is compared once more after a second, since the view follows the log; what the view has
 * not reached by then is not judged.
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
    if (kind === undefined) continue;
    const [first] = await store.readStream(transactionStream(transactionId));
    // A row without events has no time, so it is reported whatever the range.
    if (first === undefined || isInScope(first, options)) differences.push({ transactionId, kind });
  }
  return { checked, differences, upTo };
}

/** Stores in the view what the events render to, for the transactions that differ. Returns those that still differ. */
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

/** Reads each stream once, when its first event is reached, and compares what it folds to with the row. */
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
      if (!isInScope(event, options)) continue;
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

/** The row that a transaction's events fold to. An event that can't follow changes nothing: the view parks it. */
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
