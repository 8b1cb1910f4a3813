import { rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { FuelError, isUnavailable } from '../../../base/errors.ts';
import { numberedFiles } from '../driver/numbered-files.ts';
import { SqliteGeneration } from './generation.ts';

/** A file may be removed between its name being read and its opening, once for each switch meanwhile. */
const MAX_TRIES = 10;

/**
 * The view's files, opened as they are needed. The first has the given name, and those that are built later have a number
 * in it: `transactions-2.db`. Served is the one with the lowest number that is not retired, and the next one is being
 * built. So a switch is one commit, which retires the served file, and a process that is killed after it leaves nothing
 * to repair. A name is never used again, since a removed file may still be open elsewhere.
 */
export class GenerationFiles {
  readonly #folder: string;
  readonly #first: string;
  readonly #clock: Clock;
  readonly #open = new Map<string, SqliteGeneration>();
  #served: SqliteGeneration | undefined;
  #isClosed = false;

  constructor(path: string, clock: Clock) {
    this.#folder = dirname(path);
    this.#first = basename(path);
    this.#clock = clock;
  }

  /** The first file is created where there is none. */
  served(): SqliteGeneration {
    this.#assertOpen();
    if (this.#served === undefined || this.#served.isRetired()) {
      // A look that began before a switch may find the retired file alone; the one that took its place existed by then.
      const [served = this.all()[0]] = this.all();
      this.#served = served ?? this.#openFile(this.#first, { mustExist: false });
    }
    return this.#served;
  }

  build(): SqliteGeneration | undefined {
    this.served();
    return this.all()[1];
  }

  /** The one in use with this number; `undefined` where there is none. */
  find(generation: number): SqliteGeneration | undefined {
    this.#assertOpen();
    const isIt = (file: SqliteGeneration): boolean =>
      !file.isRetired() && file.checkpoint()?.generation === generation;
    return [...this.#open.values()].find(isIt) ?? this.all().find(isIt);
  }

  /**
   * Those in use: the served one, and the one that is being built. Removes the files that are retired: who has one open
   * sees that, and opens the served one. An empty file that something else made is neither.
   */
  all(): SqliteGeneration[] {
    this.#assertOpen();
    for (let tries = 1; ; tries++) {
      try {
        return numberedFiles(this.#folder, this.#first)
          .map((name) => this.#openFile(name, { mustExist: true }))
          .filter((file) => file.checkpoint() !== undefined && !this.#removeRetired(file));
      } catch (error) {
        if (!isUnavailable(error) || tries === MAX_TRIES) throw error; // it was removed after its name was read
      }
    }
  }

  create(generation: number): SqliteGeneration {
    return this.#openFile(this.#first.replace(/\.db$/, `-${generation}.db`), { mustExist: false });
  }

  close(): void {
    this.#isClosed = true;
    for (const file of this.#open.values()) file.close();
    this.#open.clear();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new FuelError('STORE_CLOSED', `${join(this.#folder, this.#first)} is closed`);
  }

  #openFile(name: string, { mustExist }: { readonly mustExist: boolean }): SqliteGeneration {
    const path = join(this.#folder, name);
    const file = this.#open.get(path) ?? new SqliteGeneration(path, { clock: this.#clock, mustExist });
    this.#open.set(path, file);
    return file;
  }

  #removeRetired(file: SqliteGeneration): boolean {
    if (!file.isRetired()) return false;
    file.close();
    this.#open.delete(file.path);
    if (this.#served === file) this.#served = undefined;
    for (const suffix of ['', '-wal', '-shm']) rmSync(file.path + suffix, { force: true });
    return true;
  }
}
