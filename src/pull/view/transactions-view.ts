import type { RenderedRecord } from '../../../projections/record.ts';
import type { Reference, RowState, TransactionRow } from '../../../projections/transactions.ts';
import type { VisibleStatus } from '../../domain/transaction-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { Anchor } from '../../event-store/store-identity.ts';
import type { ViewChange } from '../record/project-event.ts';
import type { BuildPlace, Checkpoint, ParkedTransactionEvent } from './checkpoint.ts';

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
  /** Only records with this value, or one of these: distinct, and at least one. */
  readonly references?: Readonly<Partial<Record<Reference, number | readonly number[] | undefined>>>;
  /** Distinct; at least one. */
  readonly statuses: readonly VisibleStatus[];
  /** Only records after this place in the list. */
  readonly after?: Place | undefined;
  readonly limit: number;
}

/** A record as a page needs it. */
export interface PageRow extends RenderedRecord, Place {}

export interface ViewPage {
  readonly rows: readonly PageRow[];
  /** Exact at the moment of the query. */
  readonly hasMore: boolean;
}

export interface ParkedPage {
  readonly after?: Position;
  /** `MAX_PARKED_READ` unless given. */
  readonly limit?: number;
}

/**
 * Reads the visible transactions, rendered, and a tombstone for each one that was voided, cancelled or erased. With a
 * `generation` a read is of that one, served or being built; all reads but `page` also work before the view is complete.
 *
 * - `page` reads one consistent snapshot of one account, and at most `limit` + 1 index entries for each
 *   corporate and status asked for. Rejects with `STORE_UNAVAILABLE` while the view is not complete enough to
 *   serve (see `Checkpoint.servesFrom`).
 * - `find` leaves out those that the view does not know.
 * - `rowsAfter` reads visible rows with an id above `afterId`, in ascending order of ids, at most `limit`: the last ones
 *   are those of a shorter answer. `idsAfter` reads the ids of the same rows.
 * - `parked` lists parked events by their position: the first ones, or those after a position. `countParked` counts what
 *   it lists without loading it: metrics read it often.
 * - `checkpoint` is that of the served view unless told otherwise: `undefined` before the first `reset`, or where no view is being
 *   built, by whichever process.
 */
export interface ViewReads {
  page(query: PageQuery): Promise<ViewPage>;
  find(transactionIds: readonly number[], generation?: number): Promise<ReadonlyMap<number, RowState>>;
  rowsAfter(afterId: number, limit: number, generation?: number): Promise<TransactionRow[]>;
  idsAfter(afterId: number, limit: number): Promise<number[]>;
  parked(page?: ParkedPage): Promise<ParkedTransactionEvent[]>;
  countParked(): Promise<number>;
  checkpoint(of?: 'served' | 'built'): Promise<Checkpoint | undefined>;
}

/** How far the view is once changes are applied. */
export interface AppliedTo extends Pick<Checkpoint, 'generation' | 'position'> {
  /** The newest event of these changes; kept where it is not newer than the present one. */
  readonly anchor?: Anchor | undefined;
}

/**
 * Changes the view. At most one more is built beside the served one: `apply` fills either, by its number.
 *
 * - `apply` is safe to repeat and to reorder: a change counts only when its revision is above the row's. That it may follow
 *   those before it was judged by its stream (`changesOf`). Each transaction changes atomically, and the checkpoint
 *   moves after all of them, never back. Returns what was parked; changes nothing and returns `reset` where the
 *   generation is neither served nor being built.
 * - `replace` replaces what the view has of a transaction with what all of its events change, in one that is being built too;
 *   `erasureOf` leaves the tombstone of a transaction that nothing follows.
 * - `reset` puts an empty view in place of the served one: it is at position 0 then, with the next generation.
 * - `startBuild` continues what is being built where it is usable, of the same store and rendering. Otherwise it is dropped, and
 *   another one begins at position 0, complete at `servesFrom`.
 * - `serveBuild` puts it in the place of the served one, which is removed: all processes see it within a second, and each
 *   page is of one of the two. True for one that is served already. False, and nothing changes, for one that was dropped,
 *   is not complete, or is behind the served one.
 */
export interface ViewWriter {
  apply(changes: readonly ViewChange[], to: AppliedTo): Promise<readonly ParkedTransactionEvent[] | 'reset'>;
  replace(transactionId: number, changes: readonly ViewChange[]): Promise<void>;
  reset(storeId: string, servesFrom: Position): Promise<Checkpoint>;
  startBuild(place: BuildPlace): Promise<Checkpoint>;
  serveBuild(generation: number): Promise<boolean>;
}

/** After `close` every call rejects with `STORE_CLOSED`. */
export interface TransactionsView extends ViewReads, ViewWriter {
  close(): Promise<void>;
}
