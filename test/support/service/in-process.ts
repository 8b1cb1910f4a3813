import { Readable } from 'node:stream';
import { vi } from 'vitest';
import { main } from '../../../src/operator/cli/program.ts';
import { type CommandResult, commandResult } from './command-result.ts';
import type { Env } from './commands.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const USER_ONLY = 0o077; // as src/operator/cli/main.ts sets it

export interface InProcessOptions {
  /** In place of this process's own environment. */
  readonly env?: Env;
  readonly stdin?: string | Buffer | undefined;
}

/** Commands share this process's environment and streams, so that one runs after the other. */
let last: Promise<unknown> = Promise.resolve();

/** Runs `fuel` with these arguments to its end, in this process: a tenth of the work of a process of its own. */
export function runInProcess(
  args: readonly string[],
  options: InProcessOptions = {},
): Promise<CommandResult> {
  const result = last.then(() => run(args, options));
  last = result.catch(() => undefined);
  return result;
}

async function run(args: readonly string[], { env, stdin = '' }: InProcessOptions): Promise<CommandResult> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text, ...rest: unknown[]) => {
      written[name] += String(text);
      const done = rest.at(-1);
      if (typeof done === 'function') done();
      return true;
    }),
  );
  const input = vi
    .spyOn(process, 'stdin', 'get')
    .mockReturnValue(Readable.from([Buffer.from(stdin)]) as never);
  const listeners = listenersNow();
  const own = { ...process.env };
  if (env !== undefined) replaceEnvironment(env);
  const umask = process.umask(USER_ONLY);
  try {
    await main(['node', 'fuel', ...args]);
    return commandResult(Number(process.exitCode ?? 0), written);
  } finally {
    process.umask(umask);
    if (env !== undefined) replaceEnvironment(own);
    process.exitCode = undefined;
    for (const spy of [...spies, input]) spy.mockRestore();
    removeListenersSince(listeners);
  }
}

function replaceEnvironment(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}

interface Listeners {
  readonly signals: readonly (readonly unknown[])[];
  readonly errors: readonly unknown[];
}

function listenersNow(): Listeners {
  return {
    signals: SIGNALS.map((signal) => process.listeners(signal)),
    errors: process.stdout.listeners('error'),
  };
}

/** What a command listens to until its process ends. */
function removeListenersSince(before: Listeners): void {
  for (const [index, signal] of SIGNALS.entries()) {
    for (const added of process.listeners(signal)) {
      if (before.signals[index]?.includes(added) !== true) process.off(signal, added);
    }
  }
  for (const added of process.stdout.listeners('error')) {
    if (!before.errors.includes(added)) process.stdout.off('error', added as () => void);
  }
}
