import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const FRAME_HEADER_BYTES = 24;

export interface Logged {
  readonly bytes: number;
  readonly pages: number;
}

/**
 * Measures what `work` writes to the write-ahead log of an embedded file. A reader keeps the log from starting over
 * meanwhile, so that its size is the answer. Each commit after the first 16 MB then also tries a checkpoint in vain, so
 * don't time this run.
 */
export async function loggedBy(path: string, work: () => Promise<unknown>): Promise<Logged> {
  const reader = new DatabaseSync(path, { timeout: 10_000 });
  try {
    const pageBytes = reader.prepare('PRAGMA page_size').get()?.page_size as number;
    reader.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM sqlite_schema').get(); // from now on it holds its place in the log
    const before = sizeOf(path);
    await work();
    const bytes = sizeOf(path) - before;
    return { bytes, pages: Math.round(bytes / (pageBytes + FRAME_HEADER_BYTES)) };
  } finally {
    reader.close();
  }
}

function sizeOf(path: string): number {
  return statSync(`${path}-wal`).size;
}
