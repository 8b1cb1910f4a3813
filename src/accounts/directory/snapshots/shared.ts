import { type SnapshotContent, snapshotParts } from './snapshot.ts';
import type { DirectorySnapshots, SnapshotHeader, StoredSnapshot } from './snapshots.ts';

/** A snapshot in memory that the threads of a process share. Accounts stay packed in it, so that one copy serves all. */
export interface SharedSnapshot {
  readonly header: SnapshotHeader;
  readonly parts: readonly SharedArrayBuffer[];
}

/** Where a directory starts from. */
export type SnapshotSource = Pick<DirectorySnapshots, 'load'>;

/** The stored snapshot; what is loaded of it stays in memory that can be handed over to other threads. */
export class SharingSource implements SnapshotSource {
  readonly #snapshots: SnapshotSource;
  #loaded: SharedSnapshot | undefined;

  constructor(snapshots: SnapshotSource) {
    this.#snapshots = snapshots;
  }

  /** The last one that was read to its end; `undefined` before. */
  get loaded(): SharedSnapshot | undefined {
    return this.#loaded;
  }

  async load(): Promise<StoredSnapshot | undefined> {
    const stored = await this.#snapshots.load();
    return stored && { header: stored.header, parts: this.#sharing(stored) };
  }

  async *#sharing({ header, parts }: StoredSnapshot): AsyncGenerator<Uint8Array> {
    const shared: SharedArrayBuffer[] = [];
    for await (const part of parts) {
      const bytes = sharedCopy(part);
      shared.push(bytes.buffer);
      yield bytes;
    }
    this.#loaded = { header, parts: shared };
  }
}

/** What a directory holds, for threads that start now. */
export function sharedSnapshot(header: SnapshotHeader, content: SnapshotContent): SharedSnapshot {
  return { header, parts: Array.from(snapshotParts(content), (part) => sharedCopy(part).buffer) };
}

/** The source of a thread that starts from what the main thread has loaded; the stored one where it has none. */
export function startingFrom(shared: SharedSnapshot | undefined, stored: SnapshotSource): SnapshotSource {
  if (shared === undefined) return stored;
  const { header, parts } = shared;
  return { load: async () => ({ header, parts: views(parts) }) };
}

async function* views(parts: readonly SharedArrayBuffer[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield new Uint8Array(part);
}

function sharedCopy(part: Uint8Array): Uint8Array<SharedArrayBuffer> {
  const bytes = new Uint8Array(new SharedArrayBuffer(part.length));
  bytes.set(part);
  return bytes;
}
