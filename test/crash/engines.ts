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
/** Starts a cluster of three instead, or those of its nodes that are dead: `{"url", "pids", "ports", "leader"}`. */
const CLUSTER = process.env.FUEL_TEST_CLUSTER ?? '';
const DOUBLE = fileURLToPath(new URL('./double-node.ts', import.meta.url));

const READY_WITHIN_MS = 20_000;

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
  /** How soon after the last kill every process must be ready; no limit of its own unless given. */
  readonly readyWithinMs?: number;
  readonly list: readonly Engine[];
  remove(): Promise<void>;
}

export const EMBEDDED: Engines = { name: 'embedded', env: {}, list: [], remove: async () => undefined };

/**
 * EventStoreDB and MongoDB. Where `FUEL_TEST_CLUSTER` or `FUEL_TEST_EVENTSTORE` names a program that starts real nodes,
 * those and a replica set of three; else the double of EventStoreDB and a replica set of one. All are processes.
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

/** What the program prints: of one node, or of a cluster, whose leader it names by its port. */
interface Printed {
  readonly url: string;
  readonly pid?: number;
  readonly pids?: readonly number[];
  readonly ports?: readonly number[];
  readonly leader?: number;
}

/** An event store in separate processes, which a program starts. Of a cluster the leader is killed every second time. */
class EventStoreProcess implements Engine {
  name = 'EventStoreDB';
  readonly #command: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-crash-events-'));
  #child: ChildProcess | undefined;
  /** The leader is the first. */
  #pids: readonly number[] = [];
  #kills = 0;
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
    const { url, pid = 0, pids = [pid], ports = [], leader = 0 }: Printed = JSON.parse(line);
    this.url = url;
    const leads = (of: number): boolean => ports[pids.indexOf(of)] === leader;
    this.#pids = pids.toSorted((a, b) => Number(leads(b)) - Number(leads(a)));
  }

  async kill(): Promise<void> {
    if (this.#pids.length > 1) await this.#chooseNode();
    await this.#killNode(this.#pids[0]);
  }

  /** Puts the node that is to be killed first. */
  async #chooseNode(): Promise<void> {
    await this.start(); // it may have another leader by now
    const isLeader = this.#kills++ % 2 === 0;
    this.name = isLeader ? 'EventStoreDB, the leader' : 'EventStoreDB, a follower';
    if (!isLeader) this.#pids = this.#pids.slice(1);
  }

  async #killNode(pid = 0): Promise<void> {
    const child = this.#child;
    process.kill(pid, 'SIGKILL');
    // A program may have detached the node: then it is not our child, and can not be waited for.
    if (child?.pid === pid && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  async remove(): Promise<void> {
    if (this.#kills > 0) await this.start(); // it names all of the nodes
    for (const pid of this.#pids) await this.#killNode(pid).catch(() => undefined); // it may be dead
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
