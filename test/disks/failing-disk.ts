import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Env, folder } from '../support/service/commands.ts';

const SOURCE = fileURLToPath(new URL('failing-io.c', import.meta.url));
/** The error numbers of Linux: an I/O error, a full disk, a read-only file system. */
export const ERRORS = { EIO: 5, ENOSPC: 28, EROFS: 30 } as const;

/** How a disk fails: at which call (from 1), with which error, and if all later calls fail too. */
export interface Failure {
  readonly at: number;
  readonly error: keyof typeof ERRORS;
  readonly goesOn: boolean;
}

/** A library, preloaded into processes, that lets calls on the files of a folder fail. */
export class FailingDisk {
  readonly #library: string;
  readonly #counter: string;

  private constructor(library: string, counter: string) {
    this.#library = library;
    this.#counter = counter;
  }

  /** Builds the library; `undefined` if there is no C compiler. */
  static make(): FailingDisk | undefined {
    const [library, counter] = [join(folder(), 'failing-io.so'), join(folder(), 'counter')];
    try {
      execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl'], { stdio: 'ignore' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    return new FailingDisk(library, counter);
  }

  /** Returns the environment for processes that use the folder, and restarts the count of calls. */
  env(dataDir: string, { at, error, goesOn }: Failure = { at: 0, error: 'EIO', goesOn: false }): Env {
    writeFileSync(this.#counter, Buffer.alloc(8));
    return {
      LD_PRELOAD: this.#library,
      FAILING_FOLDER: dataDir,
      FAILING_COUNTER: this.#counter,
      FAILING_AT: String(at),
      FAILING_ERRNO: String(ERRORS[error]),
      FAILING_ON: goesOn ? '1' : '0',
    };
  }

  /** The number of calls since `env`. */
  get calls(): number {
    return Number(readFileSync(this.#counter).readBigUInt64LE());
  }
}
