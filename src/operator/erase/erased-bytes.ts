import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLocked } from '../../engines/sqlite/driver/errors.ts';
import { EMBEDDED_FILES, embeddedFiles, numberedFiles } from '../../engines/sqlite/embedded-files.ts';
import type { Engines } from '../../service/engines/engines.ts';

const LOCK_WAIT_MS = 100;
const MAX_WAIT_MS = 10_000;

/** The stores that hold records, and how the names of their embedded files begin. */
const WITH_RECORDS = [
  ['store', 'events'],
  ['view', 'transactions'],
  ['queue', 'deliveries'],
] as const;

export interface ErasedBytesOptions {
  readonly folder: string;
  /** How long to wait for readers and writers of a file (default: 10 s). */
  readonly withinMs?: number;
  /** Called before each step, with what it does to which file. Ends the work if it throws. */
  readonly onStep?: (step: string) => void;
}

/** A file that may still contain erased bytes, why, and what to do about it. */
export interface Remainder {
  readonly file: string;
  readonly reason: string;
}

/** Tells the operator about the copies that `removeErasedBytes` does not reach. */
export const COPIES_REMAIN =
  'Not covered: what customers have pulled or received, and copies that somebody made, such as backups and exports. ' +
  'Remove copies yourself; if you restore a backup, run the same command again.';

/**
 * Removes erased bytes from the embedded files. SQLite overwrites what it deletes, but a page may hold an older copy of a row
 * that was moved, and the write-ahead log holds older pages. So each file is rewritten, which keeps other writers waiting for
 * some seconds per 100 MB, and its log is emptied. Needs no text of what was erased, so it can be repeated at any time.
 * Returns the files that may still contain such bytes.
 */
export async function removeErasedBytes(
  engines: Pick<Engines, 'embedded' | 'view'>,
  { folder, withinMs = MAX_WAIT_MS, onStep = () => undefined }: ErasedBytesOptions,
): Promise<readonly Remainder[]> {
  const remainders = await unusedFiles(engines, folder);
  const unused = new Set(remainders.map(({ file }) => file));
  for (const file of embeddedFiles(folder).map((name) => join(folder, name))) {
    if (unused.has(file)) continue;
    onStep(`rewriting ${file}`);
    const rewritten = await until(withinMs, () => rewrite(file));
    if (rewritten !== 'done') remainders.push({ file, reason: `it could not be rewritten: ${rewritten}` });
    onStep(`emptying ${file}-wal`);
    const truncated = await until(withinMs, () => truncateLog(file));
    if (truncated !== 'done')
      remainders.push({ file: `${file}-wal`, reason: `it could not be emptied: ${truncated}` });
  }
  return remainders;
}

/** Returns the files with records that the service made and no longer uses, so that nothing is erased in them. */
async function unusedFiles(
  { embedded, view }: Pick<Engines, 'embedded' | 'view'>,
  folder: string,
): Promise<Remainder[]> {
  const remainders: Remainder[] = [];
  for (const [store, stem] of WITH_RECORDS) {
    const files = numberedFiles(folder, `${stem}.db`);
    const used = embedded.includes(store) ? await usedFiles(store, files, view) : [];
    for (const name of files)
      if (!used.includes(name))
        remainders.push({
          file: join(folder, name),
          reason: 'the service no longer uses the file. Remove it',
        });
  }
  return remainders;
}

/** A view has a file for each generation; all others have one. */
async function usedFiles(
  store: (typeof WITH_RECORDS)[number][0],
  files: readonly string[],
  view: Engines['view'],
): Promise<readonly string[]> {
  if (store !== 'view' || files.length === 0) return files;
  const [served, built] = [await view().checkpoint('served'), await view().checkpoint('built')];
  const numbers = [served?.generation, built?.generation, ...(await view().leaving())];
  return files.filter(
    (name) => name === EMBEDDED_FILES.transactions || numbers.some((n) => name.endsWith(`-${n}.db`)),
  );
}

/** Retries while others use the file. Returns `done` or the reason for giving up. */
async function until(withinMs: number, step: () => 'done' | 'busy'): Promise<string> {
  const deadlineMs = performance.now() + withinMs;
  for (;;) {
    try {
      if (step() === 'done') return 'done';
    } catch (error) {
      if (!isLocked(error)) return `${(error as Error).message}. Run the same command again`;
    }
    if (performance.now() > deadlineMs)
      return 'another process uses it. Run the same command again when the service is less busy, or stopped';
    await sleep(LOCK_WAIT_MS);
  }
}

function rewrite(file: string): 'done' {
  withDatabase(file, (db) => db.exec('VACUUM'));
  return 'done';
}

/** Moves the write-ahead log into the file and empties it. This needs a moment without readers. */
function truncateLog(file: string): 'done' | 'busy' {
  return withDatabase(file, (db) =>
    db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0 ? 'done' : 'busy',
  );
}

function withDatabase<T>(file: string, work: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(file, { timeout: LOCK_WAIT_MS });
  try {
    db.exec('PRAGMA secure_delete = ON');
    return work(db);
  } finally {
    db.close();
  }
}
