import { statSync } from 'node:fs';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { FuelError } from '../../../base/errors.ts';
import { backoff } from '../../../base/retry.ts';
import { damagedFile, isBusy, isDamage, isLocked, toKnownError } from './errors.ts';
import { idOfFile, putAside } from './put-aside.ts';

const MAX_READ_WAIT_MS = 1_000; // readers wait only while another process recovers the log after a crash
const MAX_LOCK_WAIT_MS = 30_000;
const LOCK_BACKOFF = { firstMs: 1, maxMs: 10 } as const;
const MAX_OPEN_TRIES = 50;
const OPEN_PAUSE_MS = 20;
const PAGE_BYTES = 8192; // five records a page
const SMALL_CACHE_MIB = 2; // a process opens a dozen connections
/** A file up to this size that may be recreated is checked when it is opened, which takes some milliseconds. */
const MAX_LOOKED_THROUGH_BYTES = 16 * 1024 * 1024;
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
  /**
   * Given for a file that may be lost at any time. If it is damaged, it is renamed and recreated, and this is called. The
   * call that found the damage rejects with `STORE_UNAVAILABLE`, and must be retried from its beginning.
   */
  readonly onPutAside?: ((aside: string) => void) | undefined;
}

/**
 * One connection to one of the embedded files, which other processes may use too. In WAL mode readers never wait for
 * a writer. Statements run on the calling thread.
 */
export class Database {
  readonly #path: string;
  readonly #options: OpenOptions;
  #db: DatabaseSync;
  /** The id of the open file, which another process may have put aside. */
  #fileId: number | undefined;
  #isPrepared = false;
  #replacements = 0;
  #dataVersion: StatementSync | undefined;

  constructor(path: string, options: OpenOptions) {
    this.#path = path;
    this.#options = options;
    this.#db = this.#open();
    try {
      this.#prepareFile();
    } catch (error) {
      this.close();
      const known = toKnownError(this.#path, error);
      if (options.onPutAside === undefined || !isDamage(known)) throw known;
      this.#replace();
    }
  }

  get path(): string {
    return this.#path;
  }

  /** How often the file was replaced since it was opened. Each time its content was lost. */
  get replacements(): number {
    return this.#replacements;
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
    const make = (): StatementSync => this.#db.prepare(sql);
    return this.#withKnownErrors(this.#orKnown(make), make);
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
        throw new FuelError('STORE_BUSY', `${this.#path} stayed locked for ${MAX_LOCK_WAIT_MS / 1000} s`);
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

  #open(): DatabaseSync {
    try {
      return new DatabaseSync(this.#path, { timeout: MAX_LOCK_WAIT_MS });
    } catch (error) {
      throw toKnownError(this.#path, error);
    }
  }

  #tryBegin(): boolean {
    this.assertOpen();
    this.#assertPresent();
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
    this.#assertPresent();
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

  /** Wraps a statement, since most run outside of `write` and `read`, and any may find a damaged page or another file. */
  #withKnownErrors(statement: StatementSync, make: () => StatementSync): StatementSync {
    let present = { statement, db: this.#db };
    for (const name of ['get', 'all', 'run'] as const) {
      const call = StatementSync.prototype[name] as (...values: unknown[]) => unknown;
      Object.defineProperty(statement, name, {
        value: (...values: unknown[]): unknown => {
          try {
            this.#assertPresent();
            if (present.db !== this.#db) present = { statement: make(), db: this.#db };
            return call.apply(present.statement, values);
          } catch (error) {
            throw this.#known(error);
          }
        },
      });
    }
    return statement;
  }

  /** Throws `STORE_UNAVAILABLE` if another process has put the file aside. The new one is open then. */
  #assertPresent(): void {
    if (this.#options.onPutAside === undefined || !this.#db.isOpen || this.#db.isTransaction) return;
    if (idOfFile(this.#path) === this.#fileId) return;
    this.#replace();
    throw new FuelError('STORE_UNAVAILABLE', `${this.#path} was replaced`);
  }

  #orKnown<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#known(error);
    }
  }

  #known(error: unknown): unknown {
    const known = toKnownError(this.#path, error);
    if (this.#options.onPutAside === undefined || !this.#isPrepared || !isDamage(known)) return known;
    this.#replace();
    return new FuelError('STORE_UNAVAILABLE', `${this.#path} was damaged, and is recreated`, {
      cause: known,
    });
  }

  #replace(): void {
    this.close();
    const aside = putAside(this.#path, this.#fileId);
    this.#db = this.#open();
    this.#dataVersion = undefined;
    this.#replacements++;
    this.#prepareFile();
    if (aside !== undefined) this.#options.onPutAside?.(aside);
  }

  #prepareFile(): void {
    this.#isPrepared = false;
    this.#fileId = idOfFile(this.#path);
    withoutRace(() => this.#prepare(this.#options));
    if (this.#options.onPutAside !== undefined && statSync(this.#path).size < MAX_LOOKED_THROUGH_BYTES) {
      const found = this.#db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
      if (found !== 'ok') throw damagedFile(this.#path, found);
    }
    this.#isPrepared = true;
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
      `${this.#path} has version ${version} and this program knows ${known}: ` +
        'run the newer program, or restore a backup made by this one',
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
