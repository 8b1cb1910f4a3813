import type { Position } from '../../../event-store/event-store.ts';

/** Identifies a snapshot of the directory. */
export interface SnapshotHeader {
  /** Of the form of its parts: a snapshot of another version is not read. */
  readonly version: number;
  /** The event store that it was made from. */
  readonly storeId: string;
  /** Every account event up to here is in it. */
  readonly position: Position;
}

export interface StoredSnapshot {
  readonly header: SnapshotHeader;
  /** As they were saved, in that order; each at most 1 MiB unless one account alone is larger. They don't change. */
  readonly parts: AsyncIterable<Uint8Array>;
}

/**
 * Keeps the directory between two starts, so that a process need not read the whole log. It may be lost at any time:
 * then the directory is built from the events.
 *
 * - `save` replaces the snapshot atomically: a process that loads meanwhile gets one of the two, whole. Of two that are
 *   saved at once the one with the later position stays.
 * - `load` returns the snapshot, `undefined` where there is none. Reading its parts rejects where some are missing, or where
 *   anything of it, the header too, is not as a process with one of the master keys saved it: what is read before the
 *   end is not to be believed.
 */
export interface DirectorySnapshots {
  load(): Promise<StoredSnapshot | undefined>;
  save(header: SnapshotHeader, parts: Iterable<Uint8Array>): Promise<void>;
  close(): Promise<void>;
}
