import { statSync } from 'node:fs';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { FuelError } from '../../../base/errors.ts';
import { backoff } from '../../../base/retry.ts';
import { damagedFile, isBusy, isLocked, isRebuilt, toKnownError } from './errors.ts';
import { damageIn } from './inspect-file.ts';

const MAX_READ_WAIT_MS = 1_000; // readers wait only while another process recovers the log after a crash
const MAX_LOCK_WAIT_MS = 30_000;
const LOCK_BACKOFF = { firstMs: 1, maxMs: 10 } as const;
const MAX_OPEN_TRIES = 50;
const OPEN_PAUSE_MS = 20;
const PAGE_BYTES = 8192; // five records a page
const SMALL_CACHE_MIB = 2; // a process opens a dozen connections
/** A file up to this size is read through when it is opened, which takes a millisecond per MiB. */
const MAX_CHECKED_BYTES = 16 * 1024 * 1024;
const LOG_BYTES = 16 * 1024 * 1024; // between checkpoints

export interface OpenOptions {
  /** The steps that make the schema. Later changes are further steps. `user_version` counts those that have run. */
  readonly migrations: readonly string[];
  /** With `full` a commit survives a power cut. With `normal` it may be lost, but the file stays intact. */
  readonly durability: 'full' | 'normal';
  /** The page size of a new file, by default 8 KiB. Smaller pages suit commits that change little in many places. */
  readonly pageBytes?: number;
  /** How much of the file this connection keeps in memory, besides the operating system's cache; by default 2. */
  readonly cacheMiB?: number;
}

/**
 * One connection to one of the embedded files, which other processes may use too. In WAL mode readers never wait for
 * a writer. Statements run on the calling thread.
 */
export class Database {
  readonly path: string;
  readonly #db: DatabaseSync;
  #dataVersion: StatementSync | undefined;

  /** Throws `STORE_DAMAGED` for a damaged file, and `STORE_NEWER` if this program does not know its version. */
  constructor(path: string, options: OpenOptions) {
    this.path = path;
    this.#db = this.#orKnown(() => new DatabaseSync(path, { timeout: MAX_LOCK_WAIT_MS }));
    try {
      withoutRace(() => this.#prepare(options));
      this.#check();
    } catch (error) {
      this.close();
      throw this.#known(error);
    }
  }

  get isOpen(): boolean {
    return this.#db.isOpen;
  }

  /** Throws `STORE_CLOSED` after `close`. */
  assertOpen(): void {
    if (!this.#db.isOpen) throw new FuelError('STORE_CLOSED', `${this.path} is closed`);
  }

  prepare(sql: string): StatementSync {
    this.assertOpen();
    return this.#withKnownErrors(this.#orKnown(() => this.#db.prepare(sql)));
  }

  exec(sql: string): void {
    this.assertOpen();
    this.#orKnown(() => this.#db.exec(sql));
  }

  /**
   * Runs `work` in one write transaction. While another process holds the write lock it waits, without blocking the
   * event loop. Rejects with `STORE_BUSY` after 30 s, `STORE_UNAVAILABLE` if the disk is full or fails, `ITEM_REFUSED`
   * for values that the file can't store, and with what `work` throws, after a rollback.
   */
  async write<T>(work: () => T): Promise<T> {
    const deadline = performance.now() + MAX_LOCK_WAIT_MS;
    const waits = backoff(LOCK_BACKOFF);
    for (;;) {
      if (this.#tryBegin()) return this.#finish(work);
      if (performance.now() > deadline) {
        throw new FuelError('STORE_BUSY', `${this.path} stayed locked for ${MAX_LOCK_WAIT_MS / 1000} s`);
      }
      await sleep(waits.next().value);
    }
  }

  /** Runs `work` on one snapshot. It must be short, since a long one prevents checkpoints of the write-ahead log. */
  read<T>(work: () => T): T {
    // It has nothing to commit.
    return this.#within('BEGIN', work, 'ROLLBACK');
  }

  /** Changes whenever another connection has committed to the file. */
  dataVersion(): number {
    this.assertOpen();
    this.#dataVersion ??= this.prepare('PRAGMA data_version');
    return this.#dataVersion.get()?.data_version as number;
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }

  #tryBegin(): boolean {
    this.assertOpen();
    this.#db.exec('PRAGMA busy_timeout = 0');
    try {
      this.#db.exec('BEGIN IMMEDIATE');
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw this.#known(error);
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${MAX_READ_WAIT_MS}`);
    }
  }

  #within<T>(begin: string, work: () => T, end = 'COMMIT'): T {
    this.assertOpen();
    this.#orKnown(() => this.#db.exec(begin));
    return this.#finish(work, end);
  }

  #finish<T>(work: () => T, end = 'COMMIT'): T {
    try {
      const result = work();
      this.#db.exec(end);
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw this.#known(error);
    }
  }

  /** Wraps a statement, since most run outside of `write` and `read`, and any may find a damaged page. */
  #withKnownErrors(statement: StatementSync): StatementSync {
    for (const name of ['get', 'all', 'run'] as const) {
      const call = StatementSync.prototype[name] as (...values: unknown[]) => unknown;
      Object.defineProperty(statement, name, {
        value: (...values: unknown[]): unknown => this.#orKnown(() => call.apply(statement, values)),
      });
    }
    return statement;
  }

  #orKnown<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#known(error);
    }
  }

  #known(error: unknown): unknown {
    return toKnownError(this.path, error);
  }

  /**
   * Refuses a damaged file that the service rebuilds. Damage in a large one is found when it is read. A file that only a backup
   * restores is used as far as it can be read.
   */
  #check(): void {
    const { size = Number.POSITIVE_INFINITY } = statSync(this.path, { throwIfNoEntry: false }) ?? {};
    if (size > MAX_CHECKED_BYTES || !isRebuilt(this.path)) return;
    const damage = damageIn(this.#db);
    if (damage !== null) throw damagedFile(this.path, damage);
  }

  #prepare(options: OpenOptions): void {
    const { migrations, durability, pageBytes = PAGE_BYTES, cacheMiB = SMALL_CACHE_MIB } = options;
    this.#db.exec(`PRAGMA page_size = ${pageBytes}`);
    this.#db.exec('PRAGMA journal_mode = WAL');
    this.#db.exec(`PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`);
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${LOG_BYTES / pageBytes}`);
    this.#db.exec(`PRAGMA cache_size = -${cacheMiB * 1024}`);
    this.#db.exec('PRAGMA secure_delete = ON'); // deleted rows are overwritten, not left in free pages
    this.#migrate(migrations);
    this.#db.exec(`PRAGMA busy_timeout = ${MAX_READ_WAIT_MS}`);
  }

  #migrate(migrations: readonly string[]): void {
    if (this.#versionUpTo(migrations.length) === migrations.length) return;
    this.#db.exec('BEGIN IMMEDIATE');
    this.#finish(() => {
      // Another process may have migrated the file meanwhile.
      for (const step of migrations.slice(this.#versionUpTo(migrations.length))) this.#db.exec(step);
      this.#db.exec(`PRAGMA user_version = ${migrations.length}`);
    });
  }

  /** Returns the version of the file. Throws `STORE_NEWER` if this program does not know it. */
  #versionUpTo(known: number): number {
    const version = this.#db.prepare('PRAGMA user_version').get()?.user_version as number;
    if (version <= known) return version;
    throw new FuelError(
      'STORE_NEWER',
      `${this.path} has version ${version}, and this program knows ${known}. ` +
        'Run the newer program, or restore a backup made by this one',
    );
  }
}

/**
 * Repeats the work if several processes create a file at once: SQLite refuses some of them without waiting while two
 * change the journal's mode. The work must be safe to repeat.
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
