import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { openBare } from './bare-database.ts';

const BATCH_EVENTS = 1_000;

export type StoredRow = readonly (string | number | null)[];

/** The rows of a built view, and the statements that created their table and its indexes. */
export interface StoredView {
  readonly rows: readonly StoredRow[];
  readonly schema: readonly string[];
}

/**
 * Writes one row for each event read: the next row of the view, starting again when they run out. Returns the
 * milliseconds that it took.
 */
export async function rebuildBare(
  eventsPath: string,
  viewPath: string,
  { rows, schema }: StoredView,
): Promise<number> {
  const events = openBare(eventsPath, 'FULL');
  const view = openBare(viewPath, 'NORMAL');
  for (const sql of schema) view.exec(sql);
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
    `INSERT OR REPLACE INTO transactions_1 VALUES (${(rows[0] ?? []).map(() => '?').join(', ')})`,
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

/** Reads the view of the first generation in a folder. */
export function storedView(folder: string): StoredView {
  const db = openBare(join(folder, 'transactions-1.db'), 'NORMAL');
  const select = db.prepare('SELECT * FROM transactions_1 ORDER BY id');
  select.setReturnArrays(true);
  const rows = select.all() as unknown as StoredRow[];
  const made = db.prepare("SELECT sql FROM sqlite_schema WHERE tbl_name = 'transactions_1' ORDER BY rowid");
  const schema = made.all().map(({ sql }) => String(sql));
  db.close();
  return { rows, schema };
}
