import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { SEALS_STREAM } from '../../domain/operations-events.ts';
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

/** Returns the newest signed checkpoint in a copied log; `undefined` if nothing is sealed. */
export function copiedCheckpoint(folder: string): string | undefined {
  const newest = `SELECT data ->> '$.checkpoint' AS note FROM events WHERE stream = '${SEALS_STREAM}' ORDER BY revision DESC LIMIT 1`;
  return readCopy(
    join(folder, EMBEDDED_FILES.events),
    (db) => db.prepare(newest).get()?.note as string | undefined,
  );
}

/** Returns the position at which a copied log ends; 0 if it is empty. */
export function copiedEnd(folder: string): number {
  const last = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"; // counts erased events too
  return readCopy(
    join(folder, EMBEDDED_FILES.events),
    (db) => (db.prepare(last).get()?.seq as number | undefined) ?? 0,
  );
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
