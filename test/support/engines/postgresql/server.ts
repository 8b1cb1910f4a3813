import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import pg from 'pg';
import { lastingPort } from '../../lasting-port.ts';
import { until } from '../../waiting.ts';

/** The folder of Debian's versions of PostgreSQL. */
const DEBIAN = '/usr/lib/postgresql';
const STARTED_WITHIN_MS = 60_000;
/** The ids of `nobody`, since PostgreSQL refuses to run as root. */
export const NOBODY = { uid: 65_534, gid: 65_534 };
/** The settings for tests, whose data need not survive a crash of the machine. */
const SETTINGS = ['fsync=off', 'max_connections=300', 'shared_buffers=64MB', 'listen_addresses=127.0.0.1'];

/** Returns the folder of `postgres` and `initdb`: `POSTGRES_BINARIES`, else on the PATH, else Debian's newest version. */
export function findPostgres(): string | undefined {
  const onPath = (process.env.PATH ?? '').split(delimiter);
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const ofDebian = versions.map((version) => join(DEBIAN, version, 'bin'));
  return [process.env.POSTGRES_BINARIES ?? '', ...onPath, ...ofDebian].find(
    (folder) => folder !== '' && ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))),
  );
}

interface PostgresOptions {
  /** The folder that `findPostgres` returns. */
  readonly binaries: string;
  /** Further settings, as `name=value`. */
  readonly settings?: readonly string[];
  readonly port?: number;
}

/** A `postgres` with its own folder, which a test can kill and start again on the same port and files. */
export class Postgres {
  readonly #options: PostgresOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-postgres-'));
  #port: number;
  #isMade = false;
  #child: ChildProcess | undefined;

  constructor(options: PostgresOptions) {
    this.#options = options;
    this.#port = options.port ?? 0;
  }

  get url(): string {
    return `postgres://fuel@127.0.0.1:${this.#port}/postgres`;
  }

  get port(): number {
    return this.#port;
  }

  /** Starts it and waits until it accepts statements. */
  async start(): Promise<this> {
    const as = process.getuid?.() === 0 ? NOBODY : {};
    const data = join(this.#folder, 'data');
    const { binaries, settings = [] } = this.#options;
    if (this.#port === 0) this.#port = await lastingPort();
    if (!this.#isMade) {
      this.#isMade = true;
      if (process.getuid?.() === 0) chownSync(this.#folder, NOBODY.uid, NOBODY.gid);
      const how = ['--username=fuel', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
      execFileSync(join(binaries, 'initdb'), ['-D', data, ...how], {
        ...as,
        stdio: 'ignore',
        cwd: this.#folder,
      });
    }
    const given = [...SETTINGS, `port=${this.#port}`, `unix_socket_directories=${this.#folder}`, ...settings];
    const args = ['-D', data, ...given.flatMap((each) => ['-c', each])];
    this.#child = spawn(join(binaries, 'postgres'), args, { ...as, stdio: 'ignore', cwd: this.#folder });
    await until(() => this.#answers(), STARTED_WITHIN_MS);
    return this;
  }

  /** Shuts it down immediately: connections are cut, nothing is written, and the next start recovers as after a crash. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGQUIT');
    await ended;
  }

  /** Ends it and removes its files. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) throw new Error('postgres ended');
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 500 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return true;
    } catch {
      return false;
    } finally {
      await client.end();
    }
  }
}
