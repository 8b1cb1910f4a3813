import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import pg from 'pg';
import { lastingPort } from '../../lasting-port.ts';
import { until } from '../../waiting.ts';
import { NOBODY } from './server.ts';

/** Returns the `pgbouncer` to run: `PGBOUNCER_BINARY`, else one on the PATH, else Debian's. */
export function findPgBouncer(): string | undefined {
  const onPath = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'];
  const found = [process.env.PGBOUNCER_BINARY ?? '', ...onPath.map((folder) => join(folder, 'pgbouncer'))];
  return found.find((path) => path !== '' && existsSync(path));
}

interface PgBouncerOptions {
  /** The URL of the server. */
  readonly server: string;
  /** Further settings, as `name = value`. */
  readonly settings?: readonly string[];
  /** The password of `fuel`, the only user then; by default anyone connects. */
  readonly password?: string;
}

/** A PgBouncer in front of a `Postgres`, which gives each transaction a connection to the server. */
export class PgBouncer {
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-pgbouncer-'));
  readonly #binary: string;
  #port = 0;
  #user = 'fuel';
  #child: ChildProcess | undefined;

  constructor(binary: string) {
    this.#binary = binary;
  }

  get url(): string {
    return `postgres://${this.#user}@127.0.0.1:${this.#port}/postgres`;
  }

  async start({ server, settings = [], password }: PgBouncerOptions) {
    this.#port = await lastingPort();
    const { port, username } = new URL(server);
    const config = join(this.#folder, 'pgbouncer.ini');
    const users = join(this.#folder, 'users.txt');
    if (password !== undefined) {
      this.#user = `fuel:${password}`;
      writeFileSync(users, `"fuel" "${password}"\n`);
    }
    const own = [
      ...(password === undefined
        ? ['auth_type = any']
        : ['auth_type = scram-sha-256', `auth_file = ${users}`]),
      'pool_mode = transaction',
      'listen_addr = 127.0.0.1',
      'unix_socket_dir =',
      'max_client_conn = 100',
    ];
    const target = `postgres = host=127.0.0.1 port=${port} dbname=postgres user=${username}`;
    const lines = ['[databases]', target, '[pgbouncer]', `listen_port = ${this.#port}`, ...own, ...settings];
    writeFileSync(config, `${lines.join('\n')}\n`);
    const as = process.getuid?.() === 0 ? NOBODY : {};
    if (process.getuid?.() === 0) chownSync(this.#folder, NOBODY.uid, NOBODY.gid);
    this.#child = spawn(this.#binary, ['-q', config], { ...as, stdio: 'ignore', cwd: this.#folder });
    await until(() => this.#answers());
    return this;
  }

  async remove(): Promise<void> {
    this.#child?.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    const client = new pg.Client(this.url);
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } catch {
      return false;
    } finally {
      await client.end();
    }
  }
}
