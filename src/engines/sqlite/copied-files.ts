import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { SEALS_STREAM } from '../../domain/operations-events.ts';
import { VIEWS } from '../../pull/view/stores.ts';
import { orDamaged } from './driver/errors.ts';
import { EMBEDDED_FILES } from './embedded-files.ts';

/** More pages than any file has. A copy is one step, so that a busy writer can't make it start over forever. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Writes a consistent copy of an embedded file to `target` while others use the file. The copy gets a rollback journal, by
 * which `restoredOverLog` knows it.
 */
export async function backupFile(source: string, target: string): Promise<void> {
  const db = new DatabaseSync(source, { readOnly: true });
  try {
    await backup(db, target, { rate: ALL_PAGES });
    const copy = new DatabaseSync(target);
    try {
      copy.exec('PRAGMA journal_mode = DELETE');
    } finally {
      copy.close();
    }
  } catch (error) {
    throw orDamaged(source, error);
  } finally {
    db.close();
  }
}

/** The last positions in the copies of a backup; `null` if there is no such copy or nothing in it. */
export interface CopiedPositions {
  readonly events: number | null;
  readonly transactions: number | null;
}

/** Returns the newest signed checkpoint in a copied log; `undefined` if nothing is sealed. Throws like `copiedPositions`. */
export function copiedCheckpoint(folder: string): string | undefined {
  const newest = `SELECT data ->> '$.checkpoint' AS note FROM events WHERE stream = '${SEALS_STREAM}' ORDER BY revision DESC LIMIT 1`;
  return readCopy(
    join(folder, EMBEDDED_FILES.events),
    (db) => db.prepare(newest).get()?.note as string | undefined,
  );
}

/** Reads the positions. Throws `Error` for a file that is no database. */
export function copiedPositions(folder: string): CopiedPositions {
  const number = (name: string, table: string, sql: string): number | null => {
    if (!existsSync(join(folder, name))) return null;
    return readCopy(join(folder, name), (db) => {
      const exists = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table) !== undefined;
      return exists ? ((db.prepare(sql).get()?.position as number | undefined) ?? null) : null;
    });
  };
  const served = servedIn(folder);
  const last = "SELECT seq AS position FROM sqlite_sequence WHERE name = 'events'"; // counts erased events too
  return {
    events: number(EMBEDDED_FILES.events, 'events', last),
    transactions: number(
      `transactions-${served}.db`,
      `transactions_progress_${served}`,
      `SELECT position FROM transactions_progress_${served}`,
    ),
  };
}

/** Returns the number of the view that is served; 0 if there is none. */
function servedIn(folder: string): number {
  const path = join(folder, EMBEDDED_FILES.transactions);
  if (!existsSync(path)) return 0;
  const served = readCopy(path, (db) => db.prepare(`SELECT served FROM ${VIEWS.name}`).get()?.served);
  const { generation = 0 } = JSON.parse(String(served ?? '{}')) as { readonly generation?: number };
  return generation;
}

/** Returns the fault that SQLite finds when it checks all of a copy; `undefined` if it finds none. */
export function faultOfCopy(path: string): string | undefined {
  try {
    const found = readCopy(
      path,
      (db) => db.prepare('PRAGMA integrity_check(1)').get()?.integrity_check as string,
    );
    return found === 'ok' ? undefined : found;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Opens a copy as immutable, so that SQLite makes no file next to it. */
function readCopy<T>(path: string, read: (db: DatabaseSync) => T): T {
  const url = pathToFileURL(path);
  url.searchParams.set('mode', 'ro');
  url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}
