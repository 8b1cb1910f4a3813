import type { Directory } from '../../../projections/directory.ts';
import type { AccountState } from '../../../projections/directory-entry.ts';
import type { Clock } from '../../clock.ts';
import { accountStream } from '../../domain/account-events.ts';
import { isUnavailable } from '../../errors.ts';
import type { EventStore, Position, RecordedEvent } from '../../event-store/event-store.ts';
import { NONE_SKIPPED, readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import { readAccountEvent } from './apply-to-directory.ts';
import { LastKeyEvents } from './last-key-events.ts';
import type { SnapshotSource } from './snapshots/shared.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  type PlacedEvent,
  readSnapshot,
  type SnapshotAnchor,
} from './snapshots/snapshot.ts';
import type { SnapshotHeader } from './snapshots/snapshots.ts';

/** A snapshot that was replaced twice while it was read is read once more. */
const MAX_READS = 2;
const STREAMS_A_READ = 100;

export interface RestoreOptions {
  /** Nothing was applied to it yet. */
  readonly directory: Directory;
  readonly snapshots: SnapshotSource;
  readonly store: EventStore;
  readonly clock: Clock;
}

export type Restoring =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'restored';
      readonly header: SnapshotHeader;
      readonly anchor: SnapshotAnchor;
      readonly lastKeyEvents: LastKeyEvents;
    }
  /** The directory is unchanged: the events must be read from the first on. `header` where one could be read. */
  | { readonly kind: 'unusable'; readonly header: SnapshotHeader | undefined; readonly reason: string };

/**
 * Restores the directory from the stored snapshot of this event store. Rejects with `STORE_UNAVAILABLE` while an engine
 * is unavailable; then the directory is unchanged.
 */
export async function restoreDirectory(options: RestoreOptions): Promise<Restoring> {
  for (let reads = 1; ; reads++) {
    let header: SnapshotHeader | undefined;
    try {
      const stored = await options.snapshots.load();
      if (stored === undefined) return { kind: 'none' };
      header = stored.header;
      const misfit = await misfitOf(header, options);
      if (misfit !== undefined) return { kind: 'unusable', header, reason: misfit };
      return await restoreFrom(header, stored.parts, options);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      if (reads === MAX_READS) return { kind: 'unusable', header, reason: (error as Error).message };
    }
  }
}

async function misfitOf(
  { version, storeId, position }: SnapshotHeader,
  { store, clock }: RestoreOptions,
): Promise<string | undefined> {
  if (version !== DIRECTORY_SNAPSHOT_VERSION) {
    return `it has version ${version} and this program reads ${DIRECTORY_SNAPSHOT_VERSION}`;
  }
  const id = await storeIdentity(store, clock);
  if (storeId !== id) return `it was made from event store ${storeId} and this one is ${id}`;
  if (await store.hasReached(position)) return undefined;
  return `it is at position ${position} and the event store ends at ${await store.head()}`;
}

async function restoreFrom(
  header: SnapshotHeader,
  parts: AsyncIterable<Uint8Array>,
  { directory, store }: RestoreOptions,
): Promise<Restoring> {
  const { anchor, events, accounts } = await readSnapshot(parts);
  if (!(await isInLog(anchor, store))) {
    const reason = `event ${anchor.revision} of ${anchor.stream} is another one in this event store`;
    return { kind: 'unusable', header, reason };
  }
  const unreadable = accounts.filter((state) => state.unreadable !== null);
  const histories = await historiesOf(unreadable, header.position, store);
  const lastKeyEvents = new LastKeyEvents();
  for (const placed of events) lastKeyEvents.add(placed);
  directory.restore(accounts, header.position);
  const skipped = histories.size === 0 ? NONE_SKIPPED : await readSkipped(store);
  for (const [id, history] of histories) refold(id, history, { directory, lastKeyEvents, skipped });
  return { kind: 'restored', header, anchor, lastKeyEvents };
}

/** A store that was restored from an older backup and has grown since has other events at the same positions. */
async function isInLog(anchor: SnapshotAnchor, store: EventStore): Promise<boolean> {
  const [found] = await store.readStream(anchor.stream, { fromRevision: anchor.revision });
  return found?.id === anchor.eventId && found.position === anchor.position;
}

/**
 * The events up to `position` of unreadable accounts: this version may read what the one that saved the snapshot could
 * not. An account whose stream no longer has all that was applied is left out: it stays closed.
 */
async function historiesOf(
  states: readonly AccountState[],
  position: Position,
  store: EventStore,
): Promise<Map<number, RecordedEvent[]>> {
  const histories = new Map<number, RecordedEvent[]>();
  for (let from = 0; from < states.length; from += STREAMS_A_READ) {
    const some = states.slice(from, from + STREAMS_A_READ);
    const streams = await store.readStreams(some.map(({ id }) => accountStream(id)));
    for (const [index, { id, revision }] of some.entries()) {
      const events = streams[index] ?? [];
      if ((events.at(-1)?.revision ?? -1) < revision) continue;
      histories.set(
        id,
        events.filter((event) => event.position <= position),
      );
    }
  }
  return histories;
}

function refold(
  id: number,
  history: readonly RecordedEvent[],
  {
    directory,
    lastKeyEvents,
    skipped,
  }: { directory: Directory; lastKeyEvents: LastKeyEvents; skipped: SkippedEvents },
): void {
  const events = history.map((recorded) => ({ ...recorded, decoded: readAccountEvent(recorded, skipped) }));
  for (const { position, decoded } of events) {
    if (decoded.ok)
      lastKeyEvents.add({ event: decoded.event, position, atMs: decoded.atMs } satisfies PlacedEvent);
  }
  directory.refold(id, events);
}
