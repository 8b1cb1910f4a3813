import type { RenderedRecord, TransactionRow, VisibleStatus } from '../../../projections/transactions.ts';
import type { Position } from '../../event-store/event-store.ts';
import type { ViewChange } from '../project-event.ts';

/** The place of a record in the list: newest first by `createdAtMs`, then by `id`. */
export interface Place {
  readonly createdAtMs: number;
  readonly id: number;
}

export interface PageQuery {
  readonly accountId: number;
  /** Both inclusive. */
  readonly fromMs: number;
  readonly toMs: number;
  /** As shown in the record itself. */
  readonly corporateGroupId?: number | undefined;
  /** Distinct; at least one where given. */
  readonly corporateIds?: readonly number[] | undefined;
  /** Distinct; at least one. */
  readonly statuses: readonly VisibleStatus[];
  /** Records behind this place only. */
  readonly after?: Place | undefined;
  readonly limit: number;
}

/** A record as a page needs it. */
export interface PageRow extends RenderedRecord, Place {}

export interface ViewPage {
  readonly rows: readonly PageRow[];
  /** Exact at the moment of the query. */
  readonly hasMore: boolean;
  /** Index entries read to find the rows, where the engine tells: what the page cost besides the rows themselves. */
  readonly entriesRead: number | undefined;
}

/** An event that could not be applied, kept with the reason until an operator retries it. */
export interface ParkedTransactionEvent {
  readonly position: Position;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly reason: string;
  readonly parkedAtMs: number;
}

export interface Checkpoint {
  /** The event store that it was made from. */
  readonly storeId: string;
  /** Everything up to here is in the view. */
  readonly position: Position;
  /** The view may be served once `position` has reached this: the log ended here when the view was begun. */
  readonly servesFrom: Position;
  /** Counts the times the view was begun anew. A projector that sees another one starts over from the checkpoint. */
  readonly generation: number;
}

/**
 * The visible transactions, rendered, and a tombstone for each one that was voided, cancelled or erased.
 *
 * - `page` reads one consistent snapshot of one account, and at most `limit` + 1 index entries for each
 *   corporate and status asked for. Rejects with `STORE_UNAVAILABLE` while the view is not complete enough to
 *   serve (see `Checkpoint.servesFrom`).
 * - `apply` is safe to repeat and to reorder: a change counts only when its revision is above the row's. Each
 *   transaction changes at once, and the checkpoint moves after all of them. Returns what was parked by it;
 *   does nothing to the view that is there and says `begun anew` when that has another generation.
 * - `begin` empties the view for a new start from position 0.
 * - `replace` puts what the events of one transaction make in the place of what the view has of it.
 * - `countParked` counts what `parked` lists, without loading it: it may be asked often, however much is parked.
 * - `checkpoint` is `undefined` before the first `begin`, and when the rows were written by an older rendering.
 */
export interface TransactionsView {
  page(query: PageQuery): Promise<ViewPage>;
  find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined>;
  checkpoint(): Promise<Checkpoint | undefined>;
  begin(storeId: string, servesFrom: Position): Promise<Checkpoint>;
  apply(
    changes: readonly ViewChange[],
    to: { readonly generation: number; readonly position: Position },
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'>;
  parked(): Promise<ParkedTransactionEvent[]>;
  countParked(): Promise<number>;
  /** Applies a parked event anew: out of the list when it fits, back with the new reason when not. */
  retry(changes: readonly ViewChange[]): Promise<void>;
  erase(transactionId: number): Promise<void>;
  replace(transactionId: number, changes: readonly ViewChange[]): Promise<void>;
  close(): Promise<void>;
}
