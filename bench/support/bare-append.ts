import { systemClock } from '../../src/base/clock.ts';
import { openSqliteEventStore } from '../../src/engines/sqlite/event-store/event-store.ts';
import { inBatches, openBare } from './bare-database.ts';

export type StoredEvent = readonly [string, number, string, string, number, string, string];

/** Appends the same bytes to a fresh table in a bare loop, `batchSize` in one commit. Returns milliseconds. */
export async function appendBare(
  path: string,
  events: readonly StoredEvent[],
  batchSize: number,
): Promise<number> {
  await openSqliteEventStore({ path, clock: systemClock }).close(); // makes the table
  const db = openBare(path, 'FULL');
  const insert = db.prepare(
    `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const startedAtMs = performance.now();
  inBatches(db, events, batchSize, (event) => insert.run(...event));
  const tookMs = performance.now() - startedAtMs;
  db.close();
  return tookMs;
}

export function storedEvents(path: string): StoredEvent[] {
  const db = openBare(path, 'FULL');
  const select = db.prepare(
    'SELECT stream, revision, id, type, recorded_at, data, metadata FROM events ORDER BY position',
  );
  select.setReturnArrays(true);
  const events = select.all() as unknown as StoredEvent[];
  db.close();
  return events;
}
