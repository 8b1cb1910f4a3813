import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { backup, DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { FuelError } from '../errors.ts';
import { Backoff } from '../retry.ts';
import { isBusy, isLocked, orDamaged, toKnownError } from './errors.ts';

const MAX_READ_WAIT_MS = 1_000; // readers wait only while another process recovers the log after a crash
const MAX_LOCK_WAIT_MS = 30_000;
const LOCK_BACKOFF = { firstMs: 1, maxMs: 10 } as const;
const MAX_OPEN_TRIES = 50;
const OPEN_PAUSE_MS = 20;
const PAGE_BYTES = 8192; // five records a page
const SMALL_CACHE_MIB = 2; // a process opens a dozen connections
/** More pages than any file has: a copy in one step, so that a busy writer can't make it start over forever. */
const ALL_PAGES = 2 ** 31 - 1;
const CHECKPOINT_PAGES = 2_000; // 16 MB of log between checkpoints

export interface OpenOptions {
  /** Forward-only steps; `user_version` counts those that have run. */
  readonly migrations: readonly string[];
  /** `full`: a commit survives a power cut. `normal`: a commit may be lost by one, but the file stays intact. */
  readonly durability: 'full' | 'normal';
  /** Pages that this connection keeps in memory, besides the cache of the operating system. Default 2. */
  readonly cacheMiB?: number;
  /** Throws `STORE_UNAVAILABLE` where the file does not exist; it is created otherwise. */
  readonly mustExist?: boolean;
}

/**
 * One connection to one of the embedded files, which other processes may use too. In WAL mode readers never wait for
 * a writer. Statements run on the calling thread.
 */
export class Database {
  readonly #db: DatabaseSync;
  readonly #path: string;
  #dataVersion: StatementSync | undefined;

  constructor(path: string, options: OpenOptions) {
    this.#path = path;
    this.#db = this.#open(options.mustExist === true);
    try {
      withoutRace(() => this.#prepare(options));
    } catch (error) {
      this.close();
      throw toKnownError(this.#path, error);
    }
  }

  get path(): string {
    return this.#path;
  }

  get isOpen(): boolean {
    return this.#db.isOpen;
  }

  /** Throws `STORE_CLOSED` after `close`. */
  assertOpen(): void {
    if (!this.#db.isOpen) throw new FuelError('STORE_CLOSED', `${this.#path} is closed`);
  }

  prepare(sql: string): StatementSync {
    this.assertOpen();
    try {
      return this.#withKnownErrors(this.#db.prepare(sql));
    } catch (error) {
      throw toKnownError(this.#path, error);
    }
  }

  exec(sql: string): void {
    this.assertOpen();
    this.#db.exec(sql);
  }

  /**
   * Runs `work` in one write transaction. While another process holds the write lock it waits, without blocking the
   * event loop. Rejects with `STORE_BUSY` after 30 s, `STORE_UNAVAILABLE` where the disk is full or fails,
   * `ITEM_REFUSED` where the file can't take what it is given, and with what `work` throws, after a rollback.
   */
  async write<T>(work: () => T): Promise<T> {
    const deadline = performance.now() + MAX_LOCK_WAIT_MS;
    const backoff = new Backoff(LOCK_BACKOFF);
    for (;;) {
      if (this.#tryBegin()) return this.#finish(work);
      if (performance.now() > deadline) {
        throw new FuelError('STORE_BUSY', `${this.#path} stayed locked for ${MAX_LOCK_WAIT_MS / 1000} s`);
      }
      await sleep(backoff.nextMs());
    }
  }

  /** As `write`, where no other process has a reason to hold the lock for long: it blocks until then, at most a second. */
  writeNow<T>(work: () => T): T {
    return this.#within('BEGIN IMMEDIATE', work);
  }

  /** Runs `work` on one snapshot. It must be short: a long one prevents checkpoints of the write-ahead log. */
  read<T>(work: () => T): T {
    // Nothing was changed; and a commit fails where the work has read around a damaged page.
    return this.#within('BEGIN', work, 'ROLLBACK');
  }

  /** Changes whenever another connection has committed to the file. */
  dataVersion(): number {
    this.assertOpen();
    this.#dataVersion ??= this.#db.prepare('PRAGMA data_version');
    return this.#dataVersion.get()?.data_version as number;
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }

  #open(mustExist: boolean): DatabaseSync {
    if (!mustExist) return new DatabaseSync(this.#path, { timeout: MAX_LOCK_WAIT_MS });
    try {
      return new DatabaseSync(existingFile(this.#path), { timeout: MAX_LOCK_WAIT_MS });
    } catch (error) {
      throw toKnownError(this.#path, error);
    }
  }

  #tryBegin(): boolean {
    this.assertOpen();
    this.#db.exec('PRAGMA busy_timeout = 0');
    try {
      this.#db.exec('BEGIN IMMEDIATE');
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw toKnownError(this.#path, error);
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${MAX_READ_WAIT_MS}`);
    }
  }

  #within<T>(begin: string, work: () => T, end = 'COMMIT'): T {
    this.assertOpen();
    try {
      this.#db.exec(begin);
    } catch (error) {
      throw toKnownError(this.#path, error);
    }
    return this.#finish(work, end);
  }

  #finish<T>(work: () => T, end = 'COMMIT'): T {
    try {
      const result = work();
      this.#db.exec(end);
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw toKnownError(this.#path, error);
    }
  }

  /** Most statements run outside of `write` and `read`, and any may find a damaged page. */
  #withKnownErrors(statement: StatementSync): StatementSync {
    for (const name of ['get', 'all', 'run'] as const) {
      const call = statement[name].bind(statement) as (...values: unknown[]) => unknown;
      Object.defineProperty(statement, name, {
        value: (...values: unknown[]): unknown => {
          try {
            return call(...values);
          } catch (error) {
            throw toKnownError(this.#path, error);
          }
        },
      });
    }
    return statement;
  }

  #prepare({ migrations, durability, cacheMiB = SMALL_CACHE_MIB }: OpenOptions): void {
    this.#db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
    this.#db.exec('PRAGMA journal_mode = WAL');
    this.#db.exec(`PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`);
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    this.#db.exec(`PRAGMA cache_size = -${cacheMiB * 1024}`);
    this.#db.exec('PRAGMA secure_delete = ON'); // deleted rows are overwritten, not left in free pages
    this.#migrate(migrations);
    this.#db.exec(`PRAGMA busy_timeout = ${MAX_READ_WAIT_MS}`);
  }

  #migrate(migrations: readonly string[]): void {
    const version = (): number => this.#db.prepare('PRAGMA user_version').get()?.user_version as number;
    if (version() > migrations.length) {
      throw new FuelError(
        'STORE_NEWER',
        `${this.#path} has version ${migrations.length + 1} or later and this program knows ${migrations.length}: ` +
          'run the newer program, or restore a backup made by this one',
      );
    }
    if (version() === migrations.length) return;
    this.#db.exec('BEGIN IMMEDIATE');
    this.#finish(() => {
      for (const step of migrations.slice(version())) this.#db.exec(step);
      this.#db.exec(`PRAGMA user_version = ${migrations.length}`);
    });
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

/**
 * Of several processes that create a file at once SQLite refuses some without waiting, where two change the journal's
 * mode. The work must be safe to repeat.
 */
function withoutRace(work: () => void): void {
  for (let tries = 1; ; tries++) {
    try {
      work();
      return;
    } catch (error) {
      if (!isLocked(error) || tries === MAX_OPEN_TRIES) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, OPEN_PAUSE_MS);
    }
  }
}

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
  const db = new DatabaseSync(existingFile(path, { isReadOnly }), { timeout: MAX_READ_WAIT_MS });
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

/** Writes a consistent copy of an embedded file to `target` while others use the file. */
export async function backupFile(source: string, target: string): Promise<void> {
  const db = new DatabaseSync(source, { readOnly: true });
  try {
    await backup(db, target, { rate: ALL_PAGES });
  } catch (error) {
    throw orDamaged(source, error);
  } finally {
    db.close();
  }
}
