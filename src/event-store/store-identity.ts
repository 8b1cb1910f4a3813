import type { Clock } from '../base/clock.ts';
import { FuelError } from '../base/errors.ts';
import { world } from '../base/world.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { decodeStrict } from './codec.ts';
import type { EventStore } from './event-store.ts';
import { newEvent } from './new-event.ts';
import { isDamaged, type Position, type RecordedEvent } from './recorded-event.ts';

const AUTHOR = { actor: 'system', command: 'store open' };

/**
 * The id of the event store, from the first event of its stream `operations`. Checkpoints carry it, so that they are
 * never used with another store. A store without an id gets one; where several processes try, all return the id of
 * the one that wins. Rejects with `STORE_MISMATCH` when that first event is another one.
 */
export async function storeIdentity(store: EventStore, clock: Clock): Promise<string> {
  const known = await readIdentity(store);
  if (known !== undefined) return known;
  const named = newEvent({ type: 'StoreNamed', data: { store_id: world.randomUUID() } }, AUTHOR, clock.now());
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'none', events: [named] }]);
  const recorded = await readIdentity(store); // ours, or that of the process that was faster
  if (recorded !== undefined) return recorded;
  throw new FuelError(
    'STORE_MISMATCH',
    `the stream ${OPERATIONS_STREAM} does not accept the event that names the store`,
  );
}

/** As `storeIdentity`, and `undefined` for a store without a name. */
async function readIdentity(store: EventStore): Promise<string | undefined> {
  const [first] = await store.readStream(OPERATIONS_STREAM);
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
 * An event that something was made from. A log that was replaced by an older copy of itself, and has grown since, has
 * another one there, or none. By its time, since a redaction gives an event another id.
 */
export type Anchor = Pick<RecordedEvent, 'position' | 'stream' | 'revision' | 'recordedAtMs'>;

/** The newest of these that is whole: of a damaged one the time may be damaged too. */
export function anchorOf(events: readonly RecordedEvent[]): Anchor | undefined {
  const last = events.findLast((event) => !isDamaged(event));
  if (last === undefined) return undefined;
  const { position, stream, revision, recordedAtMs } = last;
  return { position, stream, revision, recordedAtMs };
}

/** What was made from the events of a log, up to a position. */
export interface MadeFrom {
  readonly storeId: string;
  readonly position: Position;
  /** The newest whole one of those events; `undefined` where there is none, or an earlier version has made it. */
  readonly anchor?: Anchor | undefined;
}

/** Where reading continues: only up to the anchor it is sure that the log is the one it was made from. */
export function continuesAfter({ position, anchor }: Omit<MadeFrom, 'storeId'>): Position {
  return Math.min(position, anchor?.position ?? position);
}

/** Says why it can't be used with this event store, where that is so: events would be skipped. */
export async function misfitOf(
  { storeId, position, anchor }: MadeFrom,
  place: { readonly store: EventStore; readonly storeId: string },
): Promise<string | undefined> {
  if (storeId !== place.storeId)
    return `was made from event store ${storeId} and this one is ${place.storeId}`;
  if (!(await place.store.hasReached(Math.max(position, anchor?.position ?? 0))))
    return `stands at position ${position} and the event store ends at ${await place.store.head()}`;
  if (anchor === undefined || (await hasAnchor(place.store, anchor))) return undefined;
  const { stream, revision } = anchor;
  return `was made from an event store in which event ${revision} of ${stream} is another one`;
}

async function hasAnchor(store: EventStore, anchor: Anchor): Promise<boolean> {
  const { stream, revision, position, recordedAtMs } = anchor;
  const [found] = await store.readStream(stream, { fromRevision: revision, limit: 1 });
  if (found === undefined) return store.isErased(stream);
  if (found.revision > revision) return true; // an engine that appends what is redacted anew has removed it
  return isAnchor(found, { position, recordedAtMs });
}

/** Whether the event that is found there is that one. A damaged one says nothing: what was made of it may be all that is left. */
export function isAnchor(
  found: RecordedEvent,
  { position, recordedAtMs }: Pick<Anchor, 'position' | 'recordedAtMs'>,
): boolean {
  return isDamaged(found) || (found.position === position && found.recordedAtMs === recordedAtMs);
}

/** As `assertCheckpoint`, for a view that may have no checkpoint. Gives a store without an id none. */
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
 * Rejects with `STORE_MISMATCH`, and says what to do, when a projection can't be used with this event store (see
 * `misfitOf`). `projection` is its name in `fuel projection rebuild`.
 */
export async function assertCheckpoint(
  checkpoint: MadeFrom,
  place: { readonly store: EventStore; readonly storeId: string },
  projection: string,
): Promise<void> {
  const misfit = await misfitOf(checkpoint, place);
  if (misfit === undefined) return;
  throw new FuelError(
    'STORE_MISMATCH',
    `${projection} ${misfit}: connect the event store that belongs to it, or restore its backup, ` +
      `or run "fuel projection rebuild ${projection}"`,
  );
}
