import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { orDamaged } from './errors.ts';

const MAX_WAIT_MS = 1_000;

/** The state of a file that was neither made nor updated. */
export interface FileState {
  /** The number of its migrations that have run. */
  readonly version: number;
  /** The damage that a check found; `null` if there is none, `undefined` if the file is too large to be checked. */
  readonly damage: string | null | undefined;
  /** True if this user may not write the file. */
  readonly isReadOnly: boolean;
}

/** Checks a file of up to `maxCheckedBytes`. Throws `STORE_DAMAGED` for one that is no database. */
export function inspectFile(
  path: string,
  { maxCheckedBytes }: { readonly maxCheckedBytes: number },
): FileState {
  const isReadOnly = !mayWrite(path);
  const db = new DatabaseSync(existingFile(path, isReadOnly), { timeout: MAX_WAIT_MS });
  try {
    const version = db.prepare('PRAGMA user_version').get()?.user_version as number;
    if (statSync(path).size > maxCheckedBytes) return { version, damage: undefined, isReadOnly };
    return { version, damage: damageIn(db), isReadOnly };
  } catch (error) {
    throw orDamaged(path, error);
  } finally {
    db.close();
  }
}

/** Returns the first damage that SQLite finds when it reads all of a file; `null` if there is none. */
export function damageIn(db: DatabaseSync): string | null {
  const found = String(db.prepare('PRAGMA quick_check(1)').get()?.quick_check);
  return found === 'ok' ? null : found.replace('*** in database main ***\n', '');
}

/**
 * Returns a URL by which SQLite opens a file without creating it. After an orderly end a file has no `-wal`. If this user
 * may only read it then, it is opened as immutable, since SQLite must not make a `-wal` that it can't remove.
 */
function existingFile(path: string, isReadOnly: boolean): URL {
  const url = pathToFileURL(path);
  url.searchParams.set('mode', isReadOnly ? 'ro' : 'rw');
  if (isReadOnly && !existsSync(`${path}-wal`)) url.searchParams.set('immutable', '1');
  return url;
}

/** Does not open the file, since closing it again would end the locks that this process has on it. */
function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
