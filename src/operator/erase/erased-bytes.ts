import { createReadStream, existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLocked } from '../../engines/sqlite/driver/errors.ts';
import { embeddedFiles } from '../../engines/sqlite/embedded-files.ts';

/** Files up to this size are always rewritten. That takes about a second, during which other writers wait. */
const REWRITTEN_BYTES = 64 * 1024 * 1024;
const LOCK_WAIT_MS = 100;
const MAX_WAIT_MS = 10_000;
/** Each text makes the search slower. */
export const MAX_TEXTS = 200;
/** This much of a record's text is searched for: more than records have in common, and less than a page of a file. */
export const SEARCHED_CHARACTERS = 800;
const CHUNK_BYTES = 4 * 1024 * 1024;

export interface ErasedBytesOptions {
  readonly folder: string;
  /** The names of the databases (default: those of the embedded stores). Some may not exist. */
  readonly databases?: readonly string[];
  /** Texts that no file in the folder may contain. Each occurs in an erased record only; the first 200 are searched for. */
  readonly texts: readonly string[];
  /** How long to wait for readers and writers (default: 10 s). */
  readonly withinMs?: number;
  /** Rewrites files of any size, which may take minutes. */
  readonly compact: boolean;
}

/** A file that may still contain erased bytes, and why. */
export interface Remainder {
  readonly file: string;
  readonly reason: string;
}

/**
 * Removes erased text from the embedded files' write-ahead logs and unused pages, then searches the whole folder for it.
 * SQLite overwrites what it deletes, but a page may hold an older copy of a row that was moved. Only rewriting the file surely
 * removes that. Returns the files that may still contain the text.
 */
export async function removeErasedBytes(options: ErasedBytesOptions): Promise<readonly Remainder[]> {
  const { folder, databases = embeddedFiles(folder), texts, withinMs = MAX_WAIT_MS } = options;
  const deadlineMs = performance.now() + withinMs;
  const files = await filesBelow(folder);
  const remainders = new Map<string, string>();
  for (const file of databases.map((name) => join(folder, name)).filter((path) => files.includes(path))) {
    const isLarge = (await stat(file)).size > REWRITTEN_BYTES;
    const rewritten = isLarge && !options.compact ? 'done' : await until(deadlineMs, () => rewrite(file));
    const truncated = await until(deadlineMs, () => truncateLog(file));
    if (rewritten !== 'done') remainders.set(file, `it could not be rewritten: ${rewritten}`);
    if (truncated !== 'done') remainders.set(`${file}-wal`, `it could not be emptied: ${truncated}`);
  }
  const needles = texts.slice(0, MAX_TEXTS).map((text) => Buffer.from(text));
  for (const file of await filesBelow(folder)) {
    if (!remainders.has(file) && (await containsAny(file, needles)))
      remainders.set(file, 'it holds the record');
  }
  return [...remainders].map(([file, reason]) => ({ file, reason }));
}

/** Retries while others use the file. Returns `done` or the reason for giving up. */
async function until(deadlineMs: number, step: () => 'done' | 'busy'): Promise<string> {
  for (;;) {
    try {
      if (step() === 'done') return 'done';
    } catch (error) {
      if (!isLocked(error)) return (error as Error).message;
    }
    if (performance.now() > deadlineMs) return 'another process is reading it or writing to it';
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

/** All files in the folder and below. The folder need not exist if all stores are on servers. */
async function filesBelow(folder: string): Promise<string[]> {
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function containsAny(file: string, needles: readonly Buffer[]): Promise<boolean> {
  const overlap = needles.reduce((longest, { length }) => Math.max(longest, length - 1), 0);
  let rest = Buffer.alloc(0);
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES })) {
      const bytes = Buffer.concat([rest, chunk as Buffer]);
      if (needles.some((needle) => bytes.includes(needle))) return true;
      rest = bytes.subarray(Math.max(0, bytes.length - overlap));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error; // the last reader of a write-ahead log has removed it
  }
  return false;
}
