import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type EventStoreDbDouble,
  startEventStoreDbDouble,
} from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { until } from '../support/waiting.ts';

/**
 * Starts a node on a folder, its argument, and prints `{"url": …, "pid": …}` once it answers. Run again with the same
 * folder it starts the node on what is there, on the same port.
 */
const PROGRAM = process.env.FUEL_TEST_EVENTSTORE ?? '';
/** What the tests run on, for their names. */
export const EVENT_STORE_NAME = PROGRAM === '' ? 'the double of EventStoreDB' : 'EventStoreDB';

/** An event store that a test can kill, freeze and start again on the same port and disk. */
export interface EventStoreNode {
  readonly url: string;
  start(): Promise<void>;
  /** SIGKILL; what it has on disk stays. */
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Kills it and removes its files. */
  remove(): Promise<void>;
}

/** A real node where `FUEL_TEST_EVENTSTORE` names the program that starts one, else the double. Started. */
export async function startEventStoreNode(): Promise<EventStoreNode> {
  const node = PROGRAM === '' ? new DoubleNode() : new RealNode(PROGRAM);
  await node.start();
  return node;
}

class RealNode implements EventStoreNode {
  readonly #program: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-eventstore-'));
  #pid = 0;
  url = '';

  constructor(program: string) {
    this.#program = program;
  }

  async start(): Promise<void> {
    const started = execFileSync(this.#program, [this.#folder], { encoding: 'utf8' });
    ({ url: this.url, pid: this.#pid } = JSON.parse(started));
  }

  async kill(): Promise<void> {
    process.kill(this.#pid, 'SIGKILL');
    await until(async () => !(await listens(this.url)), 10_000);
  }

  freeze(): void {
    process.kill(this.#pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.#pid, 'SIGCONT');
  }

  async remove(): Promise<void> {
    if (await listens(this.url)) await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

class DoubleNode implements EventStoreNode {
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-eventstore-'));
  #double: EventStoreDbDouble | undefined;
  #port = 0;

  get url(): string {
    return `esdb://127.0.0.1:${this.#port}?tls=false`;
  }

  async start(): Promise<void> {
    this.#double = await startEventStoreDbDouble({ port: this.#port, folder: this.#folder });
    this.#port = this.#double.port;
  }

  async kill(): Promise<void> {
    await this.#double?.stop();
    this.#double = undefined;
  }

  freeze(): void {
    this.#double?.freeze();
  }

  thaw(): void {
    this.#double?.thaw();
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function listens(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
