import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { openEmbeddedEvents } from '../../../src/engines/sqlite/engine.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import type { Env } from './commands.ts';
import { runInProcess } from './in-process.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/**
 * The command line in this process, on separate embedded stores, with an event store unless told
 * otherwise. This is quicker than a process for each command.
 */
export function commandLine(env: Env = {}, { hasStore = true } = {}): CommandLine {
  const folder = temporaryFolder();
  enter(folder, env);
  onTestFinished(() => void vi.unstubAllEnvs());
  if (hasStore) createStore();
  return commandsIn(folder);
}

/**
 * The command line on one data directory for all tests of a file or a block, which `fill` prepares. A test may add to it what no
 * other test sees.
 */
export function sharedCommandLine(fill: (line: CommandLine) => Promise<unknown>): CommandLine {
  const folder = mkdtempSync(join(tmpdir(), 'fuel-test-'));
  const line = commandsIn(folder);
  beforeAll(async () => {
    enter(folder);
    createStore();
    await fill(line);
  });
  beforeEach(() => enter(folder));
  afterEach(() => void vi.unstubAllEnvs());
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return line;
}

function enter(folder: string, env: Env = {}): void {
  for (const [name, value] of Object.entries({ FUEL_DATA_DIR: join(folder, 'data'), ...env }))
    vi.stubEnv(name, value);
}

function createStore(): void {
  void openEmbeddedEvents(loadConfig(process.env, 'command'), systemClock).close();
}

type CommandLine = ReturnType<typeof commandsIn>;

function commandsIn(folder: string) {
  const fuel = (...args: readonly string[]) => runInProcess(args);

  /** Does work on the engines that the commands use. */
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
    /** Returns the one document that a command prints. It must exit with 0. */
    async done(...args: readonly string[]) {
      const result = await fuel(...args, '--json');
      if (result.code !== 0)
        throw new Error(`fuel ${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
      return result.lines.length === 1 ? result.json : result.lines;
    },
    withEngines,
    /** Makes the files of deliveries, requests and the view, as a service does that starts here. */
    hasServed: () =>
      withEngines(async ({ queue, requests, view }) => {
        for (const open of [queue, requests]) open();
        await view().checkpoint();
      }),
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

/** Returns the cells of each line of a list that a command prints as text. */
export function cellsOf(stdout: string): string[][] {
  const lines = stdout.trimEnd().split('\n');
  return lines.map((line) => line.trim().split(/ {2,}/));
}
