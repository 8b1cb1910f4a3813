import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { lastingPort } from '../lasting-port.ts';
import { until } from '../waiting.ts';

const SHARED = fileURLToPath(new URL('../../../../shared/mongod/mongod', import.meta.url));
const STARTED_WITHIN_MS = 60_000;

/** Returns the `mongod` to run: `MONGOD_BINARY`, else one on the PATH, else the one next to the project. */
export function findMongod(): string | undefined {
  const onPath = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'mongod'));
  const found = [process.env.MONGOD_BINARY ?? '', ...onPath, SHARED].find(
    (path) => path !== '' && existsSync(path),
  );
  return found !== undefined && runs(found) ? found : undefined;
}

/** True if the binary runs. It may exist and lack a library of the system. */
function runs(binary: string): boolean {
  try {
    execFileSync(binary, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

interface MongodOptions {
  readonly binary: string;
  /** The folder of its files; by default a new one, which is removed at the end. */
  readonly folder?: string;
  readonly port?: number;
  /** A replica set of one (the default), a single node without transactions, or a member that others initiate. */
  readonly replicaSet?: boolean | 'others initiate it';
}

/** A `mongod` process that a test can kill, freeze and start again on the same port and files. */
export class Mongod {
  readonly #options: MongodOptions;
  readonly folder: string;
  port = 0;
  #child: ChildProcess | undefined;

  constructor(options: MongodOptions) {
    this.#options = options;
    this.folder = options.folder ?? mkdtempSync(join(tmpdir(), 'fuel-mongod-'));
    this.port = options.port ?? 0;
  }

  get url(): string {
    return `mongodb://127.0.0.1:${this.port}/?directConnection=true`;
  }

  /** Starts it and waits until it accepts writes, or until it answers if it is a member of a set. */
  async start(): Promise<this> {
    if (this.port === 0) this.port = await lastingPort();
    const { binary, replicaSet = true } = this.#options;
    mkdirSync(this.folder, { recursive: true });
    const args = ['--dbpath', this.folder, '--port', String(this.port), '--bind_ip', '127.0.0.1'];
    const quiet = ['--quiet', '--logpath', join(this.folder, 'log'), '--wiredTigerCacheSizeGB', '0.5'];
    const member = replicaSet === false ? [] : ['--replSet', 'rs0'];
    this.#child = spawn(binary, [...args, ...quiet, ...member], { stdio: 'ignore' });
    await this.#ready(replicaSet);
    return this;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Kills it with SIGKILL. The files stay. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  /** Kills it and removes its files, unless their folder was given. */
  async remove(): Promise<void> {
    await this.kill();
    if (this.#options.folder === undefined) rmSync(this.folder, { recursive: true, force: true });
  }

  async #ready(replicaSet: NonNullable<MongodOptions['replicaSet']>): Promise<void> {
    await until(async () => {
      const child = this.#child;
      if (child?.exitCode !== null || child.signalCode !== null) {
        throw new Error(`mongod ended; see ${join(this.folder, 'log')}`);
      }
      return this.#answers(replicaSet);
    }, STARTED_WITHIN_MS);
  }

  /**
   * True if it accepts writes or, for a member of a set, if it is up. It uses a new client each time, since one that
   * was created before the server listened may never find it.
   */
  async #answers(replicaSet: NonNullable<MongodOptions['replicaSet']>): Promise<boolean> {
    const client = new MongoClient(this.url, { serverSelectionTimeoutMS: 500, connectTimeoutMS: 500 });
    const admin = client.db('admin');
    const members = [{ _id: 0, host: `127.0.0.1:${this.port}` }];
    try {
      const hello = await admin.command({ hello: 1 }).catch(() => undefined); // not up yet
      if (hello === undefined) return false;
      if (replicaSet === 'others initiate it') return true;
      if (replicaSet && hello.setName === undefined) {
        await admin.command({ replSetInitiate: { _id: 'rs0', members } }).catch(() => undefined); // under way already
      }
      return hello.isWritablePrimary === true;
    } finally {
      await client.close();
    }
  }
}
