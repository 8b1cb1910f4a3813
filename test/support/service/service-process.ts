import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import { makeCertificate, type TestCertificate } from '../certificate.ts';
import { atEndOfFile } from '../end-of-file.ts';
import { withEngines } from '../engines/test-engines.ts';
import { type Answer, fetchAnswer } from '../fetch-answer.ts';
import { expectDocumentedAnswer } from '../openapi/validate.ts';
import { PATIENCE_MS, until, within } from '../waiting.ts';
import type { CommandResult } from './command-result.ts';
import { type Env, folder, fuel, spawnFuel } from './commands.ts';
import { Operator } from './operator.ts';

interface GetOptions {
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS' | 'PATCH';
}

const agents: Agent[] = [];
/** The certificate of all services that tests in this process start. */
let certificate: Promise<TestCertificate> | undefined;

atEndOfFile(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.destroy()));
});

interface ServiceOptions {
  readonly dataDir?: string;
  readonly env?: Env;
  readonly args?: readonly string[];
  /** The certificate to trust, in PEM; by default that of the data directory. */
  readonly ca?: string;
  /** The file descriptor of a listening socket, passed as systemd does. */
  readonly socket?: number;
  /** True if it makes its own certificate, as at a first start. By default it finds one, which is quicker. */
  readonly makesCertificate?: boolean;
}

/** A separate `fuel serve`, and what a customer and an operator can do with it. */
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

  /** An operator who works on its stores without a separate process. */
  get operator(): Operator {
    return new Operator({
      ...withEngines(this.dataDir, this.#options.env ?? {}),
      FUEL_DATA_DIR: this.dataDir,
    });
  }

  /** Everything the process has written, to check what a log must not contain. */
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
    const listening = await this.logged((line) => line.msg === 'listening');
    this.url = (listening.api as string | undefined) ?? '';
    this.opsUrl = listening.ops as string;
    await until(async () => {
      if (this.#child?.exitCode !== null) throw new Error(`the process ended\n${this.#output}`);
      return (await this.ops('/readyz')).status === 200;
    });
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
    const { child, ended } = spawnFuel(['serve', ...(this.#options.args ?? [])], {
      dataDir: this.dataDir,
      env: { ...this.#options.env, ...env },
      socket: this.#options.socket,
    });
    child.stdin.end();
    this.#child = child;
    this.#ended = ended;
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
  async logged(wanted: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    let found: Record<string, unknown> | undefined;
    try {
      await until(async () => {
        found = this.logLines.find(wanted);
        if (found === undefined && this.#child?.exitCode !== null) throw new Error('the process ended');
        return found !== undefined;
      });
    } catch (cause) {
      throw new Error(`not logged: ${wanted}\n${this.#output}`, { cause });
    }
    return found ?? {};
  }

  /** Resolves with the exit code once the process has ended. */
  ended(): Promise<number | null> {
    return within(this.#ended, PATIENCE_MS, `the service did not end\n${this.#output}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Kills it with SIGKILL. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended();
    await this.#forgetConnections();
  }

  /** Stops it with SIGTERM. Returns the exit code. */
  async stop(): Promise<number | null> {
    await this.#forgetConnections(); // it would wait for a connection that is kept open
    this.signal('SIGTERM');
    return await this.ended();
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

  /** Like `fuel`, for a step that must work before the test can begin. */
  async done(args: readonly string[], options: { stdin?: string } = {}): Promise<CommandResult> {
    const result = await this.fuel(args, options);
    if (result.code === 0) return result;
    throw new Error(`fuel ${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
  }

  /**
   * Gets a path below the base address (`/transactions?…`), or one from the root that starts with `//`. Throws if the
   * answer is not as docs/openapi.yaml describes it.
   */
  async get(path: string, { key, headers = {}, method = 'GET' }: GetOptions = {}): Promise<Answer> {
    const url = path.startsWith('//') ? `${new URL(this.url).origin}${path.slice(1)}` : `${this.url}${path}`;
    const sent = { ...(key === undefined ? {} : { 'X-API-Key': key }), ...headers };
    const answer = await fetchAnswer(url, { method, headers: sent, dispatcher: this.agent() });
    expectDocumentedAnswer({ ...answer, method });
    return answer;
  }

  ops(path: string): Promise<Answer> {
    return fetchAnswer(`${this.opsUrl}${path}`, { method: 'GET', headers: {}, dispatcher: this.agent() });
  }

  /** The certificate that a client has to trust. */
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
