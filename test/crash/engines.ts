import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Mongod } from '../support/engines/mongod.ts';
import { MongodSet } from '../support/engines/mongod-set.ts';
import { findPgBouncer, PgBouncer } from '../support/engines/postgresql/pgbouncer.ts';
import { Postgres } from '../support/engines/postgresql/server.ts';
import { lastingPort } from '../support/lasting-port.ts';
import type { Env } from '../support/service/commands.ts';

/** A program that starts a node on a folder and prints `{"url": …, "pid": …}` once it answers. */
const REAL = process.env.FUEL_TEST_EVENTSTORE ?? '';
/** A program that starts a cluster of three, or its dead nodes, and prints `{"url", "pids", "ports", "leader"}`. */
const CLUSTER = process.env.FUEL_TEST_CLUSTER ?? '';
const DOUBLE = fileURLToPath(new URL('./double-node.ts', import.meta.url));

const READY_WITHIN_MS = 20_000;

/** A server that is killed while the service works on it. */
export interface Engine {
  readonly name: string;
  /** Kills it with SIGKILL. Its files stay. */
  kill(): Promise<void>;
  /** Starts it on the same port and files. Resolves when it answers. */
  start(): Promise<void>;
}

/** The engines of a run, started. */
export interface Engines {
  readonly name: string;
  /** The settings that name the engines. */
  readonly env: Env;
  /** How soon after the last kill every process must be ready; by default without a limit. */
  readonly readyWithinMs?: number;
  readonly list: readonly Engine[];
  remove(): Promise<void>;
}

export const EMBEDDED: Engines = { name: 'embedded', env: {}, list: [], remove: async () => undefined };

/**
 * Starts EventStoreDB and MongoDB. If `FUEL_TEST_CLUSTER` or `FUEL_TEST_EVENTSTORE` names a program that starts real
 * nodes, it uses those and a replica set of three, else the double of EventStoreDB and a replica set of one. All are
 * processes.
 */
export async function startEngines(mongodBinary: string): Promise<Engines> {
  const program = CLUSTER || REAL;
  const isReal = program !== '';
  const events = new EventStoreProcess(
    isReal ? [program] : [process.execPath, DOUBLE, `${await lastingPort()}`],
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
    name: CLUSTER ? 'a cluster of three' : isReal ? 'real engines' : 'the double and mongod',
    ...(CLUSTER && { readyWithinMs: READY_WITHIN_MS }),
    env: { EVENTSTORE_URL: events.url, MONGODB_URL: mongodb.url },
    list,
    async remove() {
      await events.remove();
      await mongodb.remove();
    },
  };
}

/**
 * PostgreSQL beside embedded events or, with `FUEL_TEST_EVENTS=double`, the double of EventStoreDB. With
 * `FUEL_TEST_POOLER=pgbouncer` the service reaches it through a PgBouncer, which is not killed.
 */
export async function startPostgres(binaries: string): Promise<Engines> {
  const postgres = await new Postgres({ binaries, port: await lastingPort() }).start();
  const engine: Engine = {
    name: 'PostgreSQL',
    kill: () => postgres.kill(),
    start: async () => void (await postgres.start()),
  };
  const pool = process.env.FUEL_TEST_POOLER === 'pgbouncer' ? await startPool(postgres.url) : undefined;
  const env: Env = { POSTGRES_URL: pool?.url ?? postgres.url };
  const name = pool === undefined ? 'PostgreSQL' : 'PostgreSQL behind PgBouncer';
  const remove = async (): Promise<void> => {
    await pool?.remove();
    await postgres.remove();
  };
  if (process.env.FUEL_TEST_EVENTS !== 'double') return { name, env, list: [engine], remove };
  const events = new EventStoreProcess([process.execPath, DOUBLE, `${await lastingPort()}`]);
  await events.start();
  return {
    name: `the double and ${name}`,
    env: { ...env, EVENTSTORE_URL: events.url },
    list: [events, engine],
    async remove() {
      await events.remove();
      await remove();
    },
  };
}

function startPool(server: string): Promise<PgBouncer> {
  const settings = ['ignore_startup_parameters = options'];
  return new PgBouncer(findPgBouncer() ?? '').start({ server, settings });
}

/** The program's output for one node, or for a cluster, whose leader it names by its port. */
interface Printed {
  readonly url: string;
  readonly pid?: number;
  readonly pids?: readonly number[];
  readonly ports?: readonly number[];
  readonly leader?: number;
}

/** An event store in separate processes that a program starts. The leader of a cluster is killed every second time. */
class EventStoreProcess implements Engine {
  name = 'EventStoreDB';
  readonly #command: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-crash-events-'));
  #child: ChildProcess | undefined;
  /** The processes, the leader first. */
  #pids: readonly number[] = [];
  #kills = 0;
  url = '';

  /** Takes the program. The folder is its last argument. */
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
    const { url, pid = 0, pids = [pid], ports = [], leader = 0 }: Printed = JSON.parse(line);
    this.url = url;
    const leads = (of: number): boolean => ports[pids.indexOf(of)] === leader;
    this.#pids = pids.toSorted((a, b) => Number(leads(b)) - Number(leads(a)));
  }

  async kill(): Promise<void> {
    if (this.#pids.length > 1) await this.#chooseNode();
    await this.#killNode(this.#pids[0]);
  }

  /** Puts the node to be killed first. */
  async #chooseNode(): Promise<void> {
    await this.start(); // there may be another leader by now
    const isLeader = this.#kills++ % 2 === 0;
    this.name = isLeader ? 'EventStoreDB, the leader' : 'EventStoreDB, a follower';
    if (!isLeader) this.#pids = this.#pids.slice(1);
  }

  async #killNode(pid = 0): Promise<void> {
    const child = this.#child;
    process.kill(pid, 'SIGKILL');
    // If the program has detached the node, it is not our child and we can't wait for it.
    if (child?.pid === pid && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  async remove(): Promise<void> {
    if (this.#kills > 0) await this.start(); // it names all of the nodes
    for (const pid of this.#pids) await this.#killNode(pid).catch(() => undefined); // it may be dead
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
