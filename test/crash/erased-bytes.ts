import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from './stage.ts';

/** No file of the data directory holds the driver of a transaction that was erased, or redacted, with exit 0. */
export function judgeErasedBytes(stage: Stage, erased: readonly number[]): void {
  for (const entry of readdirSync(stage.dataDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = bytesOf(join(entry.parentPath, entry.name));
    for (const id of erased.filter((each) => bytes.includes(`Driver of ${each}"`)))
      stage.fault(`${entry.name} still holds the driver of transaction ${id}, which was erased or redacted`);
  }
}

function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0); // a write-ahead log whose last reader has ended
    throw error;
  }
}
