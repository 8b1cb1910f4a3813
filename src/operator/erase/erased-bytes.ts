import { createReadStream, existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLocked } from '../../engines/sqlite/driver/errors.ts';
import { embeddedFiles } from '../../engines/sqlite/embedded-files.ts';

/** Files up to this size are always rewritten: it takes about a second, in which others wait to write. */
const REWRITTEN_BYTES = 64 * 1024 * 1024;
const LOCK_WAIT_MS = 100;
const MAX_WAIT_MS = 10_000;
/** A search takes longer with each text. */
export const MAX_TEXTS = 200;
/** Of a record's text: more than it has in common with other records, and less than a page of the file. */
export const SEARCHED_CHARACTERS = 800;
const CHUNK_BYTES = 4 * 1024 * 1024;

export interface ErasedBytesOptions {
  readonly folder: string;
  /** The names of the files; those of the embedded stores unless given. Some may not exist. */
  readonly databases?: readonly string[];
  /** No file in the folder may contain these, of which the first 200 are looked for; each is of an erased record only. */
  readonly texts: readonly string[];
  /** How long to wait for readers and writers: 10 s unless given. */
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
 * SQLite overwrites what it deletes, but may leave a copy from an earlier move within a page; only rewriting the file
 * is sure to leave none. Returns the files that may still contain it.
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

/** Retries while others use the file. Returns `done`, or why not. */
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

/** Moves the log into the file and empties it, which needs a moment without readers. */
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

/** None where there is no such folder: with engines there need not be one. */
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
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error; // a write-ahead log that its last reader removed
  }
  return false;
}
