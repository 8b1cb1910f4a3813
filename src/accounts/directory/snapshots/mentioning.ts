import type { SnapshotSource } from './shared.ts';
import type { StoredSnapshot } from './snapshots.ts';

/**
 * A snapshot as if it had only the accounts that are stored beside `text`, ASCII, and its beginning: one part of some
 * hundred, which takes no time to restore. All parts are read, so that one that is damaged is still noticed.
 */
export function mentioning(text: string, snapshots: SnapshotSource): SnapshotSource {
  return {
    async load(): Promise<StoredSnapshot | undefined> {
      const stored = await snapshots.load();
      return stored && { header: stored.header, parts: partsWith(text, stored.parts) };
    },
  };
}

async function* partsWith(text: string, parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isBeginning = true;
  for await (const part of parts) {
    const { buffer, byteOffset, length } = part;
    if (isBeginning || Buffer.from(buffer, byteOffset, length).includes(text)) yield part;
    isBeginning = false;
  }
}
