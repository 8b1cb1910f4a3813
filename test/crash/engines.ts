import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Mongod } from '../support/engines/mongod.ts';
import { MongodSet } from '../support/engines/mongod-set.ts';
import { lastingPort } from '../support/lasting-port.ts';
import type { Env } from '../support/service/commands.ts';

/** As in test/e2e-engines: starts a node on a folder and prints `{"url": …, "pid": …}` once it answers. */
const REAL = process.env.FUEL_TEST_EVENTSTORE ?? '';
const DOUBLE = fileURLToPath(new URL('./double-node.ts', import.meta.url));

/** A server that is killed while the service works on it. */
export interface Engine {
  readonly name: string;
  /** SIGKILL; its files stay. */
  kill(): Promise<void>;
  /** On the same port and files; resolves when it answers. */
  start(): Promise<void>;
}

/** The engines of a run, started. */
export interface Engines {
  readonly name: string;
  /** The settings that name them. */
  readonly env: Env;
  readonly list: readonly Engine[];
  remove(): Promise<void>;
}

export const EMBEDDED: Engines = { name: 'embedded', env: {}, list: [], remove: async () => undefined };

/**
 * EventStoreDB and MongoDB. Where `FUEL_TEST_EVENTSTORE` names a program that starts a real node, that and a replica
 * set of three; else the double of EventStoreDB and a replica set of one. All are processes.
 */
export async function startEngines(mongodBinary: string): Promise<Engines> {
  const isReal = REAL !== '';
  const events = new EventStoreProcess(
    isReal ? [REAL] : [process.execPath, DOUBLE, `${await lastingPort()}`],
  );
  const mongodb = isReal
    ? new MongodSet(mongodBinary)
    : new Mongod({ binary: mongodBinary, port: await lastingPort() });
  await Promise.all([events.start(), mongodb.start()]);
  const list: Engine[] = [
    events,
    {
      name: 'MongoDB',
      kill: () => (mongodb instanceof MongodSet ? mongodb.killPrimary() : mongodb.kill()),
      start: async () => void (await mongodb.start()),
    },
  ];
  return {
    name: isReal ? 'real engines' : 'the double and mongod',
    env: { EVENTSTORE_URL: events.url, MONGODB_URL: mongodb.url },
    list,
    async remove() {
      await events.remove();
      await mongodb.remove();
    },
  };
}

/** A node of an event store in a separate process, which a program starts. */
class EventStoreProcess implements Engine {
  readonly name = 'EventStoreDB';
  readonly #command: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-crash-events-'));
  #child: ChildProcess | undefined;
  #pid = 0;
  url = '';

  /** The program; the folder is its last argument. */
  constructor(command: readonly string[]) {
    this.#command = command;
  }

  async start(): Promise<void> {
    const [program = '', ...args] = this.#command;
    const child = spawn(program, [...args, this.#folder], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    const [line] = await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      once(child, 'close').then(() => Promise.reject(new Error('the event store did not start'))),
    ]);
    ({ url: this.url, pid: this.#pid } = JSON.parse(line));
  }

  async kill(): Promise<void> {
    const child = this.#child;
    process.kill(this.#pid, 'SIGKILL');
    // A program may have detached the node: then it is not our child, and can not be waited for.
    if (child?.pid === this.#pid && child.exitCode === null && child.signalCode === null)
      await once(child, 'exit');
  }

  async remove(): Promise<void> {
    await this.kill().catch(() => undefined); // it may be dead
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
