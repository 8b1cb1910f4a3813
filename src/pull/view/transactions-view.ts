import type { Reference, RowState, TransactionRow } from '../../../projections/transactions.ts';
import type { VisibleStatus } from '../../domain/transaction-events.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { Anchor } from '../../event-store/store-identity.ts';
import type { ViewChange } from '../../records/project-event.ts';
import type { BuildPlace, Checkpoint, ParkedTransactionEvent } from './checkpoint.ts';

/** The place of a record in the list, which is ordered by `createdAtMs` and then by `id`, the newest first. */
export interface Place {
  readonly createdAtMs: number;
  readonly id: number;
}

export interface PageQuery {
  readonly accountId: number;
  /** Both inclusive. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Only records that refer to this id, or to one of these ids, which are distinct and at least one. */
  readonly references?: Readonly<Partial<Record<Reference, number | readonly number[] | undefined>>>;
  /** They are distinct, and there is at least one. */
  readonly statuses: readonly VisibleStatus[];
  /** Only records after this place in the list. */
  readonly after?: Place | undefined;
  readonly limit: number;
}

/** A record as a page needs it. */
export interface PageRow extends Place {
  readonly record: string;
}

export interface ViewPage {
  readonly rows: readonly PageRow[];
  /** It is exact at the moment of the query. */
  readonly hasMore: boolean;
}

export interface ParkedPage {
  readonly after?: Position;
  /** `MAX_PARKED_READ` unless given. */
  readonly limit?: number;
}

/**
 * Reads the visible transactions, rendered, and a tombstone for each transaction that was voided, cancelled or erased. Reads
 * are of the served generation unless a `generation` is given, which may be the one that is being built. All reads but
 * `page` also work before the view is complete. A `page` may be of the generation that was served up to a second ago by another
 * process's switch; it is whole, and shows nothing that `replace` has removed.
 *
 * - `page` reads at most `limit` + 1 index entries of one account for each corporate and status asked for, and for many
 *   corporates a limited number of the account's newest records before. Such a page is read in several steps: a record
 *   that stays visible is neither missing nor repeated. Any other page is one consistent snapshot. It rejects with `STORE_UNAVAILABLE` until the view is complete enough to be
 *   served (see `Checkpoint.servesFrom`), and for a reference that the served view, of an older rendering, lacks.
 * - `find` returns the rows that the view has of these transactions.
 * - `rowsAfter` reads at most `limit` visible rows with an id above `afterId`, in ascending order of ids. A shorter answer
 *   ends the list. `idsAfter` reads the ids of the same rows.
 * - `parked` lists parked events by their position: the first ones, or those after a position. `countParked` counts them
 *   without loading them, since metrics read the number often.
 * - `checkpoint` returns that of the served view or of the one being built, by whichever process, and `undefined` if there
 *   is none.
 * - `leaving` returns the generations that are no longer served or built, and not removed yet.
 */
export interface ViewReads {
  page(query: PageQuery): Promise<ViewPage>;
  find(transactionIds: readonly number[], generation?: number): Promise<ReadonlyMap<number, RowState>>;
  rowsAfter(afterId: number, limit: number, generation?: number): Promise<TransactionRow[]>;
  idsAfter(afterId: number, limit: number): Promise<number[]>;
  parked(page?: ParkedPage): Promise<ParkedTransactionEvent[]>;
  countParked(): Promise<number>;
  checkpoint(of?: 'served' | 'built'): Promise<Checkpoint | undefined>;
  leaving(): Promise<readonly number[]>;
}

/** The place that the view has reached once changes are applied. */
export interface AppliedTo extends Pick<Checkpoint, 'generation' | 'position'> {
  /** The newest event of these changes. The stored one stays if it is newer. */
  readonly anchor?: Anchor | undefined;
}

/**
 * Changes the view. While one generation is served, at most one other is built; `apply` fills either, by its number.
 *
 * - `apply` is safe to repeat and to reorder: a change counts only if its revision is above the row's. Whether a change may
 *   follow those before it was judged by its stream (`changesOf`). Each transaction changes atomically, and the checkpoint
 *   moves after all of them, never back. It returns the events that were parked, or `reset` if the generation is neither
 *   served nor being built any more. It also removes generations that left at least 30 s ago.
 * - `replace` replaces everything that the view has of a transaction, in every generation that a process may still read, with
 *   the result of these changes. `erasureOf` makes the tombstone of an erased transaction.
 * - `reset` serves an empty view, with the next generation and at position 0, instead of the present one.
 * - `startBuild` continues the build if it is usable: of the same store and rendering. Otherwise the build is dropped, and
 *   another one begins at position 0, which is complete at `servesFrom`.
 * - `serveBuild` serves the built generation instead of the present one. This process sees it at once and every other one within a
 *   second, and each page is of one of the two. It returns true for a generation that is served already, and false, with
 *   nothing changed, for one that was dropped, is not complete, or is behind the served one.
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
