import type { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../../src/base/clock.ts';
import { openSqliteView } from '../../src/engines/sqlite/view/view.ts';
import { openBare } from './bare-database.ts';

const BATCH_EVENTS = 1_000;

export type StoredRow = readonly (string | number | null)[];

/**
 * Writes one row for each event read: the next of `rows`, and the first of them again where they run out. Returns the
 * milliseconds that it took.
 */
export async function rebuildBare(
  eventsPath: string,
  viewPath: string,
  rows: readonly StoredRow[],
): Promise<number> {
  await openSqliteView({ path: viewPath, clock: systemClock }).close(); // makes the table and its indexes
  const events = openBare(eventsPath, 'FULL');
  const view = openBare(viewPath, 'NORMAL');
  const startedAtMs = performance.now();
  copyBatches(events, view, rows);
  const tookMs = performance.now() - startedAtMs;
  view.close();
  events.close();
  return tookMs;
}

function copyBatches(events: DatabaseSync, view: DatabaseSync, rows: readonly StoredRow[]): void {
  const select = events.prepare('SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?');
  const insert = view.prepare(
    `INSERT OR REPLACE INTO transactions VALUES (${(rows[0] ?? []).map(() => '?').join(', ')})`,
  );
  let written = 0;
  let position = 0;
  for (;;) {
    const batch = select.all(position, BATCH_EVENTS);
    const last = batch.at(-1);
    if (last === undefined) return;
    view.exec('BEGIN IMMEDIATE');
    for (let n = 0; n < batch.length; n++) insert.run(...(rows[written++ % rows.length] ?? []));
    view.exec('COMMIT');
    position = last.position as number;
  }
}

/** The rows of a view that was built, as they are stored. */
export function storedRows(path: string): StoredRow[] {
  const db = openBare(path, 'NORMAL');
  const select = db.prepare('SELECT * FROM transactions ORDER BY id');
  select.setReturnArrays(true);
  const rows = select.all() as unknown as StoredRow[];
  db.close();
  return rows;
}
