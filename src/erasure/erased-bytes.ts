import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLocked } from '../sqlite/database.ts';

/** Up to this size a file is written anew each time: a second or so, in which others wait to write to it. */
const REWRITTEN_BYTES = 64 * 1024 * 1024;
const LOCK_WAIT_MS = 100;
const CHUNK_BYTES = 4 * 1024 * 1024;

export interface ErasedBytesOptions {
  readonly folder: string;
  /** The embedded files' names, those that are there and those that are not. */
  readonly databases: readonly string[];
  /** What nothing below the folder may hold any more, each a text that stands in no other record. */
  readonly texts: readonly string[];
  /** For how long readers and writers are waited for. */
  readonly withinMs: number;
  /** Writes a file anew however large it is, which may take minutes. */
  readonly compact: boolean;
}

/** A file that may still hold erased bytes, and why. */
export interface Remainder {
  readonly file: string;
  readonly reason: string;
}

/**
 * Takes what was erased out of the embedded files' write-ahead logs and unused pages, and searches the whole folder
 * for it. SQLite overwrites what it removes, but a copy that it made when it filled a page may be left in that page;
 * only writing the file anew is sure to leave none. Says what remains; nothing, where it returns an empty list.
 */
export async function removeErasedBytes(options: ErasedBytesOptions): Promise<readonly Remainder[]> {
  const { folder, databases, texts } = options;
  const deadlineMs = Date.now() + options.withinMs;
  const files = await filesBelow(folder);
  const remainders = new Map<string, string>();
  for (const file of databases.map((name) => join(folder, name)).filter((path) => files.includes(path))) {
    const isLarge = (await stat(file)).size > REWRITTEN_BYTES;
    const rewritten = isLarge && !options.compact ? 'done' : await until(deadlineMs, () => rewrite(file));
    const cut = await until(deadlineMs, () => cutLog(file));
    if (rewritten !== 'done') remainders.set(file, `it could not be written anew: ${rewritten}`);
    if (cut !== 'done') remainders.set(`${file}-wal`, `it could not be emptied: ${cut}`);
  }
  const needles = texts.map((text) => Buffer.from(text));
  for (const file of await filesBelow(folder)) {
    if (!remainders.has(file) && (await holdsAny(file, needles))) remainders.set(file, 'it holds the record');
  }
  return [...remainders].map(([file, reason]) => ({ file, reason }));
}

/** Repeats it while others are at work on the file. Returns `done`, or why not. */
async function until(deadlineMs: number, step: () => 'done' | 'busy'): Promise<string> {
  for (;;) {
    try {
      if (step() === 'done') return 'done';
    } catch (error) {
      if (!isLocked(error)) return (error as Error).message;
    }
    if (Date.now() > deadlineMs) return 'another process is reading it or writing to it';
    await sleep(LOCK_WAIT_MS);
  }
}

function rewrite(file: string): 'done' {
  withDatabase(file, (db) => db.exec('VACUUM'));
  return 'done';
}

/** Moves the log into the file and empties it, which needs a moment without readers of the log. */
function cutLog(file: string): 'done' | 'busy' {
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

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function holdsAny(file: string, needles: readonly Buffer[]): Promise<boolean> {
  const overlap = needles.reduce((longest, { length }) => Math.max(longest, length - 1), 0);
  let rest = Buffer.alloc(0);
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES })) {
      const bytes = Buffer.concat([rest, chunk as Buffer]);
      if (needles.some((needle) => bytes.includes(needle))) return true;
      rest = bytes.subarray(Math.max(0, bytes.length - overlap));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error; // a log that its last reader removed
  }
  return false;
}
