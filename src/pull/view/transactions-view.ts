import type { RenderedRecord, TransactionRow, VisibleStatus } from '../../../projections/transactions.ts';
import type { Position } from '../../event-store/event-store.ts';
import type { ViewChange } from '../record/project-event.ts';
import type { BulkReads } from './bulk-reads.ts';
import type { Checkpoint, ParkedTransactionEvent } from './checkpoint.ts';
import type { ViewBuild } from './view-build.ts';

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
  /** Only records after this place in the list. */
  readonly after?: Place | undefined;
  readonly limit: number;
}

/** A record as a page needs it. The segments of all rows may be parts of one buffer. */
export interface PageRow extends RenderedRecord<Buffer>, Place {}

export interface ViewPage {
  readonly rows: readonly PageRow[];
  /** Exact at the moment of the query. */
  readonly hasMore: boolean;
  /** Index entries read to find the rows; `undefined` where the engine does not say. */
  readonly entriesRead: number | undefined;
}

export interface ParkedPage {
  readonly after?: Position;
  /** `MAX_PARKED_READ` unless given. */
  readonly limit?: number;
}

/**
 * The visible transactions, rendered, and a tombstone for each one that was voided, cancelled or erased. `build` is
 * another view beside it, which is put in its place.
 *
 * - `page` reads one consistent snapshot of one account, and at most `limit` + 1 index entries for each
 *   corporate and status asked for. Rejects with `STORE_UNAVAILABLE` while the view is not complete enough to
 *   serve (see `Checkpoint.servesFrom`).
 * - `apply` is safe to repeat and to reorder: a change counts only when its revision is above the row's. Each
 *   transaction changes atomically, and the checkpoint moves after all of them, never back. Returns what was parked;
 *   changes nothing and returns `reset` where the generation is neither served nor being built.
 * - `reset` puts an empty view in its place: it is at position 0 then, with the next generation.
 * - `replace` replaces what the view has of a transaction with what its events make.
 * - `parked` lists parked events by their position: the first ones, or those after a position.
 * - `countParked` counts what `parked` lists without loading it: metrics read it often.
 * - `checkpoint` is `undefined` before the first `reset`.
 * - `erase` counts for a view that is being built too.
 */
export interface TransactionsView extends BulkReads {
  readonly build: ViewBuild;
  page(query: PageQuery): Promise<ViewPage>;
  find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined>;
  checkpoint(): Promise<Checkpoint | undefined>;
  reset(storeId: string, servesFrom: Position): Promise<Checkpoint>;
  apply(
    changes: readonly ViewChange[],
    to: { readonly generation: number; readonly position: Position },
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'>;
  parked(page?: ParkedPage): Promise<ParkedTransactionEvent[]>;
  countParked(): Promise<number>;
  /** Applies parked events again; those that still do not fit are parked again, with the new reason. */
  retry(changes: readonly ViewChange[]): Promise<void>;
  erase(transactionId: number): Promise<void>;
  replace(transactionId: number, changes: readonly ViewChange[]): Promise<void>;
  close(): Promise<void>;
}
