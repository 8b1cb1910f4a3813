import type { Position } from '../../event-store/event-store.ts';

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
  /** The view may be served once `position` has reached this: the end of the log when the view was reset. */
  readonly servesFrom: Position;
  /** Each view that was ever made has its own. A projector that finds another one continues from the new checkpoint. */
  readonly generation: number;
  /** The `RENDERING_VERSION` of the program that made the view. */
  readonly rendering: number;
}

/** Of a view that is being built. */
export interface BuildCheckpoint extends Checkpoint {
  /** When and where a process last began or continued it, and how many events were applied since. */
  readonly since: { readonly atMs: number; readonly position: Position; readonly events: number };
}

export function isComplete({ position, servesFrom }: Checkpoint): boolean {
  return position >= servesFrom;
}
