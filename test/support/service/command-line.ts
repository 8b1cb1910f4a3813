import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { type Engines, openEmbeddedEvents, openEngines } from '../../../src/app.ts';
import { main } from '../../../src/cli/program.ts';
import { systemClock } from '../../../src/clock.ts';
import { loadConfig } from '../../../src/config/config.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import type { CommandResult, Env } from './service-process.ts';

const AUTHOR = { actor: 'test', command: 'test' };
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * The command line in this process, on embedded stores of its own, of which the events' is there unless told
 * otherwise: quicker than a process for each command.
 */
export function commandLine(env: Env = {}, { hasStore = true } = {}) {
  const folder = temporaryFolder();
  for (const [name, value] of Object.entries({ FUEL_DATA_DIR: join(folder, 'data'), ...env }))
    vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  if (hasStore) void openEmbeddedEvents(loadConfig(process.env, 'command'), systemClock).close();

  const fuel = (...args: readonly string[]) => run(['node', 'fuel', ...args]);

  /** Works on the engines that the commands use. */
  async function withEngines<T>(work: (engines: Engines) => Promise<T>): Promise<T> {
    const engines = await openEngines(loadConfig(process.env, 'command'), systemClock);
    try {
      return await work(engines);
    } finally {
      await engines.close();
    }
  }

  const append = (stream: string, events: readonly { type: string; data: unknown }[], atMs = Date.now()) =>
    withEngines((engines) =>
      engines.store().append([
        {
          stream,
          expected: 'any',
          events: events.map((event) => newEvent(event as DomainEvent, AUTHOR, atMs)),
        },
      ]),
    );

  return {
    fuel,
    /** The one document that a command prints, which must end with 0. */
    async done(...args: readonly string[]) {
      const result = await fuel(...args, '--json');
      if (result.code !== 0)
        throw new Error(`fuel ${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
      return result.lines.length === 1 ? result.json : result.lines;
    },
    withEngines,
    append,
    account: (...events: readonly AccountEvent[]) => append('account-7', events),
    eventsOf: (stream: string) => withEngines((engines) => engines.store().readStream(stream)),
    file(name: string, text: string): string {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    },
  };
}

async function run(argv: readonly string[]): Promise<CommandResult> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text, ...rest: unknown[]) => {
      written[name] += String(text);
      const done = rest.at(-1);
      if (typeof done === 'function') done();
      return true;
    }),
  );
  const before = SIGNALS.map((signal) => process.listeners(signal));
  const errorsBefore = process.stdout.listeners('error');
  try {
    await main(argv);
    return resultOf(Number(process.exitCode ?? 0), written);
  } finally {
    process.exitCode = undefined;
    for (const spy of spies) spy.mockRestore();
    // What a command listens to until its process ends.
    for (const [index, signal] of SIGNALS.entries()) {
      for (const added of process.listeners(signal)) {
        if (before[index]?.includes(added) !== true) process.off(signal, added);
      }
    }
    for (const added of process.stdout.listeners('error')) {
      if (!errorsBefore.includes(added)) process.stdout.off('error', added as () => void);
    }
  }
}

function resultOf(code: number, { stdout, stderr }: { stdout: string; stderr: string }): CommandResult {
  const lines = () => stdout.split('\n').filter((line) => line !== '');
  return {
    code,
    stdout,
    stderr,
    get json() {
      return JSON.parse(stdout);
    },
    get lines() {
      return lines().map((line) => JSON.parse(line));
    },
  };
}
