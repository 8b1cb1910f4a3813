import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { isMainThread } from 'node:worker_threads';

/** The offset of the journal's kind in the header of a database file. */
const JOURNAL_KIND_AT = 18;
/** A rollback journal. A file in use has 2, for the write-ahead log. */
const ROLLBACK = 1;

/** The results by folder. */
const judged = new Map<string, readonly string[]>();

/**
 * Returns those of the files that were copied from a backup while the log (`-wal`) of the file before them was still there.
 * SQLite would apply that log to the copy. A backup's copies have a rollback journal until they are opened for the first
 * time, so a log beside one is never its own.
 *
 * A process looks once at each folder, before it opens a file there: closing a file that was opened apart from SQLite
 * ends the locks that the process has on it. For the same reason its threads do not look again.
 */
export function restoredOverLog(folder: string, paths: () => readonly string[]): readonly string[] {
  if (!isMainThread) return [];
  const name = resolve(folder);
  const known = judged.get(name) ?? paths().filter((path) => hasLog(path) && isUnopenedCopy(path));
  judged.set(name, known);
  return known;
}

function hasLog(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** It is asked after `hasLog`, since another process may just be opening the file for the first time. */
function isUnopenedCopy(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const kind = Buffer.alloc(1);
    readSync(file, kind, 0, 1, JOURNAL_KIND_AT);
    return kind[0] === ROLLBACK;
  } finally {
    closeSync(file);
  }
}
