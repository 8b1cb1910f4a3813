import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { lastingPort } from '../lasting-port.ts';
import { until } from '../waiting.ts';
import type { ProxyRules, TestProxy } from './connect-proxy.ts';

/** Returns the `tinyproxy` to run: `TINYPROXY_BINARY`, else one on the PATH. */
export function findTinyproxy(): string | undefined {
  const onPath = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'tinyproxy'));
  return [process.env.TINYPROXY_BINARY ?? '', ...onPath].find((path) => path !== '' && existsSync(path));
}

/** A real proxy, with the log that it writes itself. */
export class Tinyproxy implements TestProxy {
  readonly #binary: string;
  readonly #rules: ProxyRules;
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-tinyproxy-'));
  #port = 0;
  #child: ChildProcess | undefined;

  constructor(binary: string, rules: ProxyRules = {}) {
    this.#binary = binary;
    this.#rules = rules;
  }

  get port(): number {
    return this.#port;
  }

  asked(): readonly string[] {
    const log = readFileSync(join(this.#folder, 'log'), 'utf8');
    return [...log.matchAll(/: CONNECT (\S+) HTTP/g)].map(([, authority = '']) => authority);
  }

  async start(): Promise<void> {
    if (this.#port === 0) this.#port = await lastingPort();
    const { credentials, ports = [] } = this.#rules;
    const lines = [
      `Port ${this.#port}`,
      'Listen 127.0.0.1',
      'LogLevel Connect',
      `LogFile "${join(this.#folder, 'log')}"`,
      ...(credentials === undefined ? [] : [`BasicAuth ${credentials.replace(':', ' ')}`]),
      ...ports.map((port) => `ConnectPort ${port}`),
    ];
    const config = join(this.#folder, 'tinyproxy.conf');
    writeFileSync(config, `${lines.join('\n')}\n`);
    this.#child = spawn(this.#binary, ['-d', '-c', config], { stdio: 'ignore' });
    await until(() => this.#accepts());
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #accepts(): Promise<boolean> {
    const socket = connect(this.#port, '127.0.0.1');
    await once(socket, 'connect').finally(() => socket.destroy());
    return true;
  }
}
