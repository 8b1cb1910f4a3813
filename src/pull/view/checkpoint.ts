import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import { FuelError } from '../../base/errors.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { Anchor, MadeFrom } from '../../event-store/store-identity.ts';

/** An event that could not be applied, kept with the reason until an operator retries it. */
export interface ParkedTransactionEvent {
  readonly position: Position;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly reason: string;
  readonly parkedAtMs: number;
}

/** The place that a view has reached: every event up to its position is in the view. */
export interface Checkpoint extends MadeFrom {
  /** The view may be served once `position` has reached this: the end of the log when the view was reset. */
  readonly servesFrom: Position;
  /** The number of the view; none is given twice. A projector that finds another number continues from the new checkpoint. */
  readonly generation: number;
  /** The `RENDERING_VERSION` of the program that made the view. */
  readonly rendering: number;
  /** The time and position at which a process last began or continued the view, and the number of events applied since. */
  readonly since: { readonly atMs: number; readonly position: Position; readonly events: number };
}

/** The view that is to be built. */
export interface BuildPlace extends Pick<Checkpoint, 'storeId' | 'servesFrom'> {
  /** The generation of a build that must not be continued, because it does not fit the event store. */
  readonly unusable?: number | undefined;
}

/** Returns the newer of two events of a log. */
export function newerAnchor(one: Anchor | undefined, other: Anchor | undefined): Anchor | undefined {
  return other !== undefined && (one === undefined || other.position > one.position) ? other : one;
}

export function isComplete({ position, servesFrom }: Checkpoint): boolean {
  return position >= servesFrom;
}

/** Throws `STORE_UNAVAILABLE` unless the view is complete enough to be served. */
export function assertServable(checkpoint: Checkpoint | undefined): asserts checkpoint is Checkpoint {
  if (checkpoint === undefined || !isComplete(checkpoint)) throw notServable();
}

export function notServable(): FuelError {
  return new FuelError(
    'STORE_UNAVAILABLE',
    'the transactions view is not built yet. Start `fuel serve`, which builds it; `fuel projection status` shows the progress',
  );
}

/** Says whether a build can be continued for this place: a new build would have the same rows. */
export function canContinue(build: Checkpoint | undefined, { storeId, unusable }: BuildPlace): boolean {
  if (build?.storeId !== storeId || build.generation === unusable) return false;
  return build.rendering === RENDERING_VERSION;
}

/** The error for a generation that is neither served nor being built. */
export function notInUse(): FuelError {
  return new FuelError('REFUSED', 'another view is served, or being built, by now');
}

export interface BuildProgress {
  readonly percent: number;
  /** Events a second since a process last began or continued the build. */
  readonly rate: number;
  /** `null` before that is known. */
  readonly seconds_left: number | null;
}

export function buildProgress({ position, servesFrom, since }: Checkpoint, nowMs: number): BuildProgress {
  const seconds = Math.max(0, nowMs - since.atMs) / 1000;
  const perSecond = seconds === 0 ? 0 : (position - since.position) / seconds;
  return {
    percent: servesFrom === 0 ? 100 : Math.min(100, Math.floor((position / servesFrom) * 1000) / 10),
    rate: seconds === 0 ? 0 : Math.round(since.events / seconds),
    seconds_left: perSecond > 0 ? Math.ceil(Math.max(0, servesFrom - position) / perSecond) : null,
  };
}
