import type { Clock } from '../base/clock.ts';
import { FuelError } from '../base/errors.ts';
import { world } from '../base/world.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { decodeStrict } from './codec.ts';
import type { EventStore } from './event-store.ts';
import { newEvent } from './new-event.ts';
import { operationsOf } from './operations.ts';
import { isDamaged, type Position, type RecordedEvent } from './recorded-event.ts';

const AUTHOR = { actor: 'system', command: 'store open' };

/**
 * Returns the id of the event store, from the first event of its stream `operations`. Checkpoints contain it, so that
 * they are never used with another store. A store without an id gets one; if several processes try, all return the id
 * of the one that wins. Rejects with `STORE_MISMATCH` if that first event is a different one.
 */
export async function storeIdentity(store: EventStore, clock: Clock): Promise<string> {
  const known = await readIdentity(store);
  if (known !== undefined) return known;
  const named = newEvent({ type: 'StoreNamed', data: { store_id: world.randomUUID() } }, AUTHOR, clock.now());
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'none', events: [named] }]);
  const recorded = await readIdentity(store); // our id, or that of a process that was faster
  if (recorded !== undefined) return recorded;
  throw new FuelError(
    'STORE_MISMATCH',
    `the stream ${OPERATIONS_STREAM} does not accept the event that names the store`,
  );
}

/** Reads the store's id; `undefined` if it has none yet. */
async function readIdentity(store: EventStore): Promise<string | undefined> {
  const { first } = await operationsOf(store);
  if (first === undefined) return undefined;
  const decoded = decodeStrict(first);
  if (decoded.ok && decoded.type === 'StoreNamed') return (decoded.data as { store_id: string }).store_id;
  const problem = decoded.ok ? `it is ${decoded.type}` : decoded.reason;
  throw new FuelError(
    'STORE_MISMATCH',
    `the first event of the stream ${OPERATIONS_STREAM} must be StoreNamed: ${problem}`,
  );
}

/**
 * The newest event that a projection has applied. If the log was replaced by an older copy of itself and has grown
 * since, this event is missing or different. It is recognized by its time, since a redaction gives an event a new id.
 */
export type Anchor = Pick<RecordedEvent, 'position' | 'stream' | 'revision' | 'recordedAtMs'>;

/** Returns the newest of these events that is not damaged: the time of a damaged one may be damaged too. */
export function anchorOf(events: readonly RecordedEvent[]): Anchor | undefined {
  const last = events.findLast((event) => !isDamaged(event));
  if (last === undefined) return undefined;
  const { position, stream, revision, recordedAtMs } = last;
  return { position, stream, revision, recordedAtMs };
}

/** Describes what a projection was made from: which log, and up to which position. */
export interface MadeFrom {
  readonly storeId: string;
  readonly position: Position;
  /** The newest undamaged event up to there; `undefined` if there is none. */
  readonly anchor?: Anchor | undefined;
}

/** Returns where reading continues. Only up to the anchor is it certain that the log is still the same. */
export function continuesAfter({ position, anchor }: Omit<MadeFrom, 'storeId'>): Position {
  return Math.min(position, anchor?.position ?? position);
}

/** Returns why a projection can't be used with this event store (events would be skipped); `undefined` if it can. */
export async function mismatchOf(
  { storeId, position, anchor }: MadeFrom,
  place: { readonly store: EventStore; readonly storeId: string },
): Promise<string | undefined> {
  if (storeId !== place.storeId)
    return `was made from event store ${storeId} and this one is ${place.storeId}`;
  const end = await place.store.head();
  if (end < Math.max(position, anchor?.position ?? 0))
    return `stands at position ${position} and the event store ends at ${end}`;
  if (anchor === undefined || (await hasAnchor(place.store, anchor))) return undefined;
  const { stream, revision } = anchor;
  return `was made from an event store in which event ${revision} of ${stream} is another one`;
}

async function hasAnchor(store: EventStore, anchor: Anchor): Promise<boolean> {
  const { stream, revision, position, recordedAtMs } = anchor;
  const [found] = await store.readStream(stream, { fromRevision: revision, limit: 1 });
  if (found === undefined) return store.isErased(stream);
  if (found.revision > revision) return true; // the engine has appended it again, for a redaction, and removed it here
  return isAnchor(found, { position, recordedAtMs });
}

/**
 * True if the found event is the anchor. A damaged event counts as such: the projection may be all that is left of it.
 */
export function isAnchor(
  found: RecordedEvent,
  { position, recordedAtMs }: Pick<Anchor, 'position' | 'recordedAtMs'>,
): boolean {
  return isDamaged(found) || (found.position === position && found.recordedAtMs === recordedAtMs);
}

/**
 * Does the check of `assertCheckpoint` for a view that may have no checkpoint. It gives no id to a store without one.
 */
export async function assertViewFits(
  checkpoint: MadeFrom | undefined,
  store: EventStore,
  projection: string,
): Promise<void> {
  if (checkpoint === undefined) return;
  const storeId = await readIdentity(store);
  if (storeId !== undefined) await assertCheckpoint(checkpoint, { store, storeId }, projection);
}

/**
 * Rejects with `STORE_MISMATCH`, saying what to do, if a projection can't be used with this event store (see
 * `mismatchOf`). `projection` is its name in `fuel projection rebuild`.
 */
export async function assertCheckpoint(
  checkpoint: MadeFrom,
  place: { readonly store: EventStore; readonly storeId: string },
  projection: string,
): Promise<void> {
  const mismatch = await mismatchOf(checkpoint, place);
  if (mismatch === undefined) return;
  throw new FuelError(
    'STORE_MISMATCH',
    `${projection} ${mismatch}. Connect the event store that belongs to it, or restore its backup, ` +
      `or run \`fuel projection rebuild ${projection}\``,
  );
}
