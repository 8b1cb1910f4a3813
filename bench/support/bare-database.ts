import { DatabaseSync } from 'node:sqlite';

/**
 * Opens a file that the service has made without any of its code, but with the settings that it uses: see
 * src/engines/sqlite/driver/database.ts. The page size is the file's own.
 */
export function openBare(path: string, durability: 'FULL' | 'NORMAL'): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 1_000 });
  db.exec('PRAGMA journal_mode = WAL');
  db.exec(`PRAGMA synchronous = ${durability}`);
  db.exec('PRAGMA wal_autocheckpoint = 2000');
  db.exec('PRAGMA cache_size = -16384');
  return db;
}

/** Runs `insert` for each item, `batchSize` of them in one transaction. */
export function inBatches<T>(
  db: DatabaseSync,
  items: readonly T[],
  batchSize: number,
  insert: (item: T) => void,
): void {
  for (let start = 0; start < items.length; start += batchSize) {
    db.exec('BEGIN IMMEDIATE');
    for (const item of items.slice(start, start + batchSize)) insert(item);
    db.exec('COMMIT');
  }
}
