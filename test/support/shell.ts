import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { atEndOfFile } from './end-of-file.ts';
import { folder } from './service/commands.ts';
import { until } from './waiting.ts';

const ROOT = join(import.meta.dirname, '../..');
const IN_A_CLONE = ['bin', 'src', 'projections', 'tools', 'examples', 'docs/guide', 'package.json'];
/** A block may install, compile and run many commands, one after the other. */
const WITHIN_MS = 200_000;

const shells = new Set<Shell>();

atEndOfFile(async () => {
  await Promise.all([...shells].map((shell) => shell.end()));
});

/** Makes a folder like a clone after `npm ci`, from which commands find the data directory and samples. */
export function clone(): string {
  const path = join(folder(), 'clone');
  for (const part of IN_A_CLONE) cpSync(join(ROOT, part), join(path, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  return path;
}

/**
 * A shell into which blocks of commands are pasted one after the other, as by a reader of a document: variables and
 * background commands stay. It ends at the first command that fails.
 */
export class Shell {
  readonly #child: ChildProcess;
  readonly #cwd: string;
  #output = '';
  #pasted = 0;

  /** `env` is all that its commands get besides PATH and HOME, so none of the developer's own settings apply. */
  constructor(cwd: string, env: Readonly<Record<string, string>> = {}) {
    this.#cwd = cwd;
    this.#child = spawn('bash', ['-euo', 'pipefail'], {
      cwd,
      env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env },
      detached: true, // a separate process group, which ends as one
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
    });
    this.#child.stdin?.on('error', () => undefined); // it has ended, and the output says why
    this.#child.stdin?.write('exec 2>&1\n'); // one pipe for both, so that the order is kept
    shells.add(this);
  }

  /** Everything that its commands have written so far. */
  get output(): string {
    return this.#output;
  }

  /** Runs the block. Returns what was written meanwhile. Rejects if one of its commands fails. */
  async paste(block: string): Promise<string> {
    const before = this.#output.length;
    const done = this.start(block);
    await this.shows(done);
    return this.#output.slice(before, this.#output.indexOf(done));
  }

  /** Starts a block whose last command stays in the foreground. Returns the line that is shown once it has ended. */
  start(block: string): string {
    this.#pasted += 1;
    const file = join(this.#cwd, `../block-${this.#child.pid}-${this.#pasted}.sh`);
    writeFileSync(file, block);
    const done = `[block ${this.#pasted} is done]`;
    // The block is read from a file, since commands that read their input must not get the next block.
    this.#child.stdin?.write(`. '${file}' </dev/null\necho '${done}'\n`);
    return done;
  }

  /** Waits until the commands have written the text. */
  async shows(text: string): Promise<void> {
    const cause = await until(async () => {
      if (this.#output.includes(text)) return true;
      if (this.#hasEnded) throw new Error('the shell ended');
      return false;
    }, WITHIN_MS).catch((error: unknown) => error);
    if (cause !== undefined) throw new Error(`not shown: ${text}\n${this.#output}`, { cause });
  }

  /** Ends the foreground command, the background commands and the shell, and waits until all have ended. */
  async end(): Promise<void> {
    shells.delete(this);
    const { pid } = this.#child;
    if (pid === undefined || this.#hasEnded) return;
    const closed = once(this.#child, 'close');
    process.kill(-pid, 'SIGTERM');
    await closed;
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}
