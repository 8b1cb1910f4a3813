import type { TransactionRow } from '../../../projections/transactions.ts';
import type { Position } from '../../event-store/event-store.ts';
import type { ViewChange } from '../project-event.ts';
import type { BulkReads } from './bulk-reads.ts';
import type { Checkpoint, ParkedTransactionEvent } from './checkpoint.ts';

/** A part of the log that one worker applies: what comes after `after`, up to `upTo`. */
export interface Bounds {
  readonly after: Position;
  readonly upTo: Position;
}

export interface Segment extends Bounds {
  /** How far it was applied. */
  readonly position: Position;
  /** How many events were applied, repeated ones included. */
  readonly events: number;
}

/** How far a build had come when a command last continued it: what its rate is counted from. */
export interface Resumed {
  readonly atMs: number;
  readonly covered: number;
  readonly events: number;
}

/**
 * A view that is built beside the served one.
 *
 * - Its segments are applied in any order, by any number of workers, each any number of times: `applySegment` stores
 *   the changes, then moves the segment's position forward. Returns what was parked.
 * - `plan` adds segments; one that overlaps a present one is left out, so that it is safe to repeat.
 * - `noteBound` splits the segment that contains the position; what follows the last segment becomes one.
 * - `finish`, when each segment was applied: makes the indexes, and moves the checkpoint to the end of the last one.
 *   From there `apply` follows the log, as it does for the served view.
 * - Every call but `checkpoint` rejects with `REFUSED` once the build was dropped, or is the served view. `checkpoint`
 *   is `undefined` then.
 */
export interface ViewBuild extends Pick<BulkReads, 'rowsAfter'> {
  readonly generation: number;
  checkpoint(): Promise<Checkpoint | undefined>;
  segments(): Promise<Segment[]>;
  plan(bounds: readonly Bounds[]): Promise<void>;
  noteBound(position: Position): Promise<void>;
  resumed(): Promise<Resumed | undefined>;
  resume(from: Resumed): Promise<void>;
  applySegment(
    changes: readonly ViewChange[],
    to: { readonly upTo: Position; readonly position: Position; readonly events: number },
  ): Promise<readonly ParkedTransactionEvent[]>;
  finish(): Promise<void>;
  apply(changes: readonly ViewChange[], position: Position): Promise<readonly ParkedTransactionEvent[]>;
  find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined>;
}

/**
 * - `current` is the one that is under way, by whichever process; there is at most one.
 * - `start` returns it where it is of the same store and rendering, and otherwise drops it and begins another one, whose
 *   checkpoint has `servesFrom` and the position 0. It begins with the segments that the served view knows of the same
 *   store, none of them applied.
 * - `switchTo` serves the build in place of the present view, which is removed: all processes see it within a second,
 *   and each page is of one of the two. False, and nothing changes, while the build is behind the served view.
 * - `drop` removes what was built.
 */
export interface ViewBuilds {
  current(): Promise<ViewBuild | undefined>;
  start(storeId: string, servesFrom: Position): Promise<ViewBuild>;
  switchTo(build: ViewBuild): Promise<boolean>;
  drop(build: ViewBuild): Promise<void>;
}
