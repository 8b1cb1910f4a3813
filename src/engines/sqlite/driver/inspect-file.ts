import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { orDamaged } from './errors.ts';

const MAX_WAIT_MS = 1_000;

/** What a file is, without making or updating it. */
export interface FileState {
  /** How many of its migrations have run. */
  readonly version: number;
  /** What a look through it found; `undefined` where it is too large to be looked through. */
  readonly damage: string | null | undefined;
  /** For this user. */
  readonly isReadOnly: boolean;
}

/** Looks through a file of up to `maxCheckedBytes`. Throws `STORE_DAMAGED` for one that is no database. */
export function inspectFile(
  path: string,
  { maxCheckedBytes }: { readonly maxCheckedBytes: number },
): FileState {
  const isReadOnly = !mayWrite(path);
  const db = new DatabaseSync(existingFile(path, { isReadOnly }), { timeout: MAX_WAIT_MS });
  try {
    const version = db.prepare('PRAGMA user_version').get()?.user_version as number;
    if (statSync(path).size > maxCheckedBytes) return { version, damage: undefined, isReadOnly };
    const found = db.prepare('PRAGMA quick_check(1)').get()?.quick_check as string;
    return { version, damage: found === 'ok' ? null : found, isReadOnly };
  } catch (error) {
    throw orDamaged(path, error);
  } finally {
    db.close();
  }
}

/**
 * Names a file that SQLite opens and does not create. One that this user may only read has no `-wal` after an orderly end:
 * nothing can change it then, and SQLite must not make a `-wal` that it can't remove.
 */
function existingFile(path: string, { isReadOnly = false } = {}): URL {
  const url = pathToFileURL(path);
  url.searchParams.set('mode', isReadOnly ? 'ro' : 'rw');
  if (isReadOnly && !existsSync(`${path}-wal`)) url.searchParams.set('immutable', '1');
  return url;
}

/** Not by opening the file: to close it again would end the locks that this process has on it. */
function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
