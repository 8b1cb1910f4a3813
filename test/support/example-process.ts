import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { until, within } from './waiting.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

/** An example in a separate process, which is killed when the test is over. */
export class ExampleProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  output = '';

  /** `env` is its whole environment besides PATH. */
  constructor(file: string, env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [join(EXAMPLES, file)], {
      env: { PATH: process.env.PATH ?? '', ...env },
    });
    this.#ended = once(this.#child, 'close');
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    onTestFinished(() => this.kill());
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async shows(text: string): Promise<void> {
    await until(() => this.output.includes(text));
  }

  /** Resolves with everything that it printed, once it has ended. Throws if it failed. */
  async finished(): Promise<string> {
    await within(this.#ended, 60_000, () => `it did not end\n${this.output}`);
    if (this.#child.exitCode !== 0) throw new Error(`it ended with ${this.#child.exitCode}\n${this.output}`);
    return this.output;
  }
}
