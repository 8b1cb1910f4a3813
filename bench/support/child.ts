import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The file for the child's standard output. */
  readonly outputFile: string;
}

export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Waits for a line of output for which `find` returns a value. */
  line<T>(find: (line: string) => T | undefined): Promise<T>;
  /** Asks the process to end and waits until it has. */
  stop(): Promise<void>;
}

const MAX_WAIT_MS = 120_000;
const LOOK_EVERY_MS = 20;

/** Starts a process that ends with this one at the latest. Its faults appear on this one's standard error. */
export function startChild({ command, args, env = {}, outputFile }: ChildOptions): Child {
  const output = openSync(outputFile, 'w');
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', output, 'inherit'],
  });
  const kill = (): boolean => child.kill('SIGKILL');
  process.once('exit', kill);
  const ended = once(child, 'exit').then(() => process.off('exit', kill));
  return {
    process: child,
    pid: child.pid ?? Number.NaN,
    async line(find) {
      const deadline = Date.now() + MAX_WAIT_MS;
      while (Date.now() < deadline && child.exitCode === null) {
        for (const line of readFileSync(outputFile, 'utf8').split('\n')) {
          const found = line === '' ? undefined : find(line);
          if (found !== undefined) return found;
        }
        await sleep(LOOK_EVERY_MS);
      }
      throw new Error(`${command} ${args.join(' ')} did not say that it is ready`);
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
