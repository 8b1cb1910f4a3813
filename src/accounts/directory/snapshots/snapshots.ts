import type { Position } from '../../../event-store/event-store.ts';

/** What a snapshot of the directory is one of. */
export interface SnapshotHeader {
  /** Of the form of its parts: another version's snapshot is not read. */
  readonly version: number;
  /** The event store that it was made from. */
  readonly storeId: string;
  /** Every account event up to here is in it. */
  readonly position: Position;
}

export interface StoredSnapshot {
  readonly header: SnapshotHeader;
  /** As they were saved, in that order; each at most 1 MiB of text unless one account alone is larger. */
  readonly parts: AsyncIterable<string>;
}

/**
 * Where the directory is kept between two starts, so that a process need not read a whole log to find the
 * accounts in it. It may be lost at any time: then it is built from the events again.
 *
 * - `save` puts a snapshot in the place of the one before, all at once: whoever loads meanwhile gets one of the
 *   two, whole. Of two that are saved at once the one with the later position stays.
 * - `load` gives the snapshot, `undefined` where there is none. Reading its parts rejects where they are not all
 *   there, or not as they were saved.
 */
export interface DirectorySnapshots {
  load(): Promise<StoredSnapshot | undefined>;
  save(header: SnapshotHeader, parts: Iterable<string>): Promise<void>;
  close(): Promise<void>;
}
