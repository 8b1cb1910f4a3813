import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { makeCertificate, type TestCertificate } from '../certificate.ts';
import { atEndOfFile } from '../end-of-file.ts';
import { withEngines } from '../engines/test-engines.ts';
import { type Answer, fetchAnswer } from '../fetch-answer.ts';
import { until, within } from '../waiting.ts';
import { type CommandResult, commandResult } from './command-result.ts';
import { runInProcess } from './in-process.ts';
import { Operator } from './operator.ts';

const BIN = fileURLToPath(new URL('../../../bin/fuel', import.meta.url));
const READY_WITHIN_MS = 15_000;
const ENDED_WITHIN_MS = 20_000;

export type Env = Readonly<Record<string, string>>;

export interface GetOptions {
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS' | 'PATCH';
}

const folders: string[] = [];
const children = new Set<ChildProcess>();
const agents: Agent[] = [];
/** For the services of all tests of this process. */
let certificate: Promise<TestCertificate> | undefined;

atEndOfFile(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all([...children].map((child) => once(child, 'close')));
  await Promise.all(agents.splice(0).map((agent) => agent.destroy()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A new folder that is removed when the tests of the file are over. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'fuel-e2e-'));
  folders.push(path);
  return path;
}

/** What every process of a test runs with: free ports, and nothing of the developer's own settings. */
function environment(dataDir: string, env: Env): Env {
  return {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    FUEL_DATA_DIR: dataDir,
    FUEL_LISTEN: '127.0.0.1:0',
    FUEL_OPS_LISTEN: '127.0.0.1:0',
    ...withEngines(dataDir, env),
  };
}

export interface CommandOptions {
  readonly dataDir: string;
  readonly env?: Env | undefined;
  readonly stdin?: string | Buffer | undefined;
}

export interface RunningCommand {
  readonly child: ChildProcess;
  readonly result: Promise<CommandResult>;
  /** Standard output so far. */
  readonly stdout: () => string;
}

/** Starts `bin/fuel` with these arguments. */
export function startFuel(args: readonly string[], options: CommandOptions): RunningCommand {
  const child = spawn(BIN, args, { env: environment(options.dataDir, options.env ?? {}) });
  children.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined); // a command that refuses may end before it has read its input
  child.stdin.end(options.stdin ?? '');
  const result = closed(child).then((code) => commandResult(code, { stdout, stderr }));
  return { child, result, stdout: () => stdout };
}

/** Runs `bin/fuel` to its end, in a process of its own. */
export function fuelProcess(args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  return startFuel(args, options).result;
}

/** Runs a command to its end in this process, which is quicker, one after the other; `serve` in its own. */
export function fuel(args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  if (args[0] === 'serve') return fuelProcess(args, options);
  const { dataDir, env = {}, stdin } = options;
  return runInProcess(args, { env: environment(dataDir, env), stdin });
}

export interface ServiceOptions {
  readonly dataDir?: string;
  readonly env?: Env;
  readonly args?: readonly string[];
  /** PEM of the certificate to trust; that of the data directory unless given. */
  readonly ca?: string;
  /** It makes its certificate itself, as it does at a first start; else it finds one, which is quicker. */
  readonly makesCertificate?: boolean;
}

/** A `fuel serve` of its own, and what a customer and an operator can do with it. */
export class ServiceProcess {
  readonly dataDir: string;
  readonly logLines: Record<string, unknown>[] = [];
  readonly #options: ServiceOptions;
  #child: ChildProcess | undefined;
  #ended: Promise<number | null> = Promise.resolve(null);
  #agent: Agent | undefined;
  #output = '';
  url = '';
  opsUrl = '';

  constructor(options: ServiceOptions = {}) {
    this.#options = options;
    this.dataDir = options.dataDir ?? join(folder(), 'data');
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Who works on its stores without a process of his own. */
  get operator(): Operator {
    return new Operator({
      ...withEngines(this.dataDir, this.#options.env ?? {}),
      FUEL_DATA_DIR: this.dataDir,
    });
  }

  /** Everything the process has written, for what a log must not hold. */
  get output(): string {
    return this.#output;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Starts it and waits until it is ready. */
  async start(env: Env = {}): Promise<this> {
    const { ca, makesCertificate = false } = this.#options;
    if (ca === undefined && !makesCertificate) await this.#putCertificate();
    this.launch(env);
    const listening = await this.logged((line) => line.msg === 'listening', READY_WITHIN_MS);
    this.url = (listening.api as string | undefined) ?? '';
    this.opsUrl = listening.ops as string;
    await until(async () => {
      if (this.#child?.exitCode !== null) throw new Error(`the process ended\n${this.#output}`);
      return (await this.ops('/readyz')).status === 200;
    }, READY_WITHIN_MS);
    return this;
  }

  async #putCertificate(): Promise<void> {
    const [cert, key] = ['tls-cert.pem', 'tls-key.pem'].map((name) => join(this.dataDir, name)) as [
      string,
      string,
    ];
    if (existsSync(cert)) return;
    certificate ??= makeCertificate();
    const made = await certificate;
    mkdirSync(this.dataDir, { recursive: true, mode: 0o700 });
    writeFileSync(key, made.key, { mode: 0o600 });
    writeFileSync(cert, made.cert, { mode: 0o600 });
  }

  /** Starts it without waiting for anything. */
  launch(env: Env = {}): void {
    this.logLines.length = 0;
    const child = spawn(BIN, ['serve', ...(this.#options.args ?? [])], {
      env: environment(this.dataDir, { ...this.#options.env, ...env }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.add(child);
    this.#child = child;
    this.#ended = closed(child);
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.logLines.push(JSON.parse(line));
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
    });
  }

  /** Waits for a line of the log. Throws with all the output when the process ends, or the time is up. */
  async logged(
    wanted: (line: Record<string, unknown>) => boolean,
    withinMs = 15_000,
  ): Promise<Record<string, unknown>> {
    let found: Record<string, unknown> | undefined;
    try {
      await until(async () => {
        found = this.logLines.find(wanted);
        if (found === undefined && this.#child?.exitCode !== null) throw new Error('the process ended');
        return found !== undefined;
      }, withinMs);
    } catch (cause) {
      throw new Error(`not logged: ${wanted}\n${this.#output}`, { cause });
    }
    return found ?? {};
  }

  /** The exit code, once the process has ended. */
  ended(): Promise<number | null> {
    return within(this.#ended, ENDED_WITHIN_MS, `the service did not end\n${this.#output}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended();
    await this.#forgetConnections();
  }

  /** SIGTERM; the exit code. */
  async stop(): Promise<number | null> {
    this.signal('SIGTERM');
    const code = await this.ended();
    await this.#forgetConnections();
    return code;
  }

  async restart(env: Env = {}): Promise<void> {
    await this.kill();
    await this.start(env);
  }

  fuel(
    args: readonly string[],
    options: { stdin?: string | Buffer; env?: Env } = {},
  ): Promise<CommandResult> {
    return fuel(args, {
      dataDir: this.dataDir,
      env: { ...this.#options.env, ...options.env },
      stdin: options.stdin,
    });
  }

  /** As `fuel`, for a step that must work before the test can begin. */
  async done(args: readonly string[], options: { stdin?: string } = {}): Promise<CommandResult> {
    const result = await this.fuel(args, options);
    if (result.code === 0) return result;
    throw new Error(`fuel ${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
  }

  /** A path below the base address (`/transactions?…`), or one from the root that starts with `//`. */
  get(path: string, { key, headers = {}, method = 'GET' }: GetOptions = {}): Promise<Answer> {
    const url = path.startsWith('//') ? `${new URL(this.url).origin}${path.slice(1)}` : `${this.url}${path}`;
    const sent = { ...(key === undefined ? {} : { 'X-API-Key': key }), ...headers };
    return fetchAnswer(url, { method, headers: sent, dispatcher: this.agent() });
  }

  ops(path: string): Promise<Answer> {
    return fetchAnswer(`${this.opsUrl}${path}`, { method: 'GET', headers: {}, dispatcher: this.agent() });
  }

  /** The certificate a client has to trust. */
  get ca(): string {
    return this.#options.ca ?? readFileSync(join(this.dataDir, 'tls-cert.pem'), 'utf8');
  }

  agent(): Agent {
    if (this.#agent === undefined) {
      const certificate = this.#options.ca !== undefined || existsSync(join(this.dataDir, 'tls-cert.pem'));
      this.#agent = new Agent(certificate ? { connect: { ca: this.ca } } : {});
      agents.push(this.#agent);
    }
    return this.#agent;
  }

  async #forgetConnections(): Promise<void> {
    await this.#agent?.destroy();
    this.#agent = undefined;
  }
}

function closed(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      children.delete(child);
      resolve(code);
    });
  });
}
