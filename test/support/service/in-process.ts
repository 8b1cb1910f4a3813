import { Readable } from 'node:stream';
import { vi } from 'vitest';
import { main } from '../../../src/operator/cli/program.ts';
import { type CommandResult, commandResult } from './command-result.ts';
import type { Env } from './commands.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const OUTPUTS = ['stdout', 'stderr'] as const;
const USER_ONLY = 0o077; // as src/operator/cli/main.ts sets it

interface InProcessOptions {
  /** The environment; by default that of this process. */
  readonly env?: Env;
  readonly stdin?: string | Buffer | undefined;
}

/** Commands share this process's environment and streams, so they run one after the other. */
let last: Promise<unknown> = Promise.resolve();

/** Runs `fuel` with these arguments to its end in this process, a tenth of the work of a separate process. */
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
  const spies = OUTPUTS.map((name) =>
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
  readonly errors: readonly (readonly unknown[])[];
}

function listenersNow(): Listeners {
  return {
    signals: SIGNALS.map((signal) => process.listeners(signal)),
    errors: OUTPUTS.map((name) => process[name].listeners('error')),
  };
}

/** Removes the listeners that a command leaves behind, since its process would end. */
function removeListenersSince(before: Listeners): void {
  for (const [index, signal] of SIGNALS.entries()) {
    for (const added of process.listeners(signal)) {
      if (before.signals[index]?.includes(added) !== true) process.off(signal, added);
    }
  }
  for (const [index, name] of OUTPUTS.entries()) {
    for (const added of process[name].listeners('error')) {
      if (before.errors[index]?.includes(added) !== true) process[name].off('error', added as () => void);
    }
  }
}
