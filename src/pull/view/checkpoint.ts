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

/** Everything up to its position is in the view. */
export interface Checkpoint extends MadeFrom {
  /** The view may be served once `position` has reached this: the end of the log when the view was reset. */
  readonly servesFrom: Position;
  /** Each view that was ever made has its own. A projector that finds another one continues from the new checkpoint. */
  readonly generation: number;
  /** The `RENDERING_VERSION` of the program that made the view. */
  readonly rendering: number;
  /** When and where a process last began or continued to make it, and how many events were applied since. */
  readonly since: { readonly atMs: number; readonly position: Position; readonly events: number };
}

/** A view to be built. */
export interface BuildPlace extends Pick<Checkpoint, 'storeId' | 'servesFrom'> {
  /** The build that must not be continued: it does not fit the event store. */
  readonly unusable?: number | undefined;
}

/** Of two events of a log. */
export function newerAnchor(one: Anchor | undefined, other: Anchor | undefined): Anchor | undefined {
  return other !== undefined && (one === undefined || other.position > one.position) ? other : one;
}

export function isComplete({ position, servesFrom }: Checkpoint): boolean {
  return position >= servesFrom;
}

/** Throws `STORE_UNAVAILABLE` unless the view is complete enough to be served. */
export function assertServable(checkpoint: Checkpoint | undefined): asserts checkpoint is Checkpoint {
  if (checkpoint === undefined || !isComplete(checkpoint)) {
    throw new FuelError('STORE_UNAVAILABLE', 'the transactions view is being built');
  }
}

/** Whether a build can be continued for that view: its rows would be the same again. */
export function canContinue(build: Checkpoint | undefined, { storeId, unusable }: BuildPlace): boolean {
  if (build?.storeId !== storeId || build.generation === unusable) return false;
  return build.rendering === RENDERING_VERSION;
}

/** Of a generation that is neither served nor being built. */
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
