import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { type Answer, fetchAnswer } from '../support/fetch-answer.ts';
import { lastingPort } from '../support/lasting-port.ts';
import type { CommandResult } from '../support/service/command-result.ts';
import { type Env, type RunningCommand, startFuel } from '../support/service/commands.ts';
import { until, within } from '../support/waiting.ts';
import { crashingAt } from './environment.ts';

const ENDED_WITHIN_MS = 40_000;
const ERROR_LEVEL = 50;
const BASE_PATH = '/api/v1/integration';
/** The wait before a process that ended with an error is started again. */
const AFTER_FAULT_MS = 500;
const OUTPUT_LINES = 40;

/** One life of a process, from its start to its end. */
interface Life {
  readonly command: RunningCommand;
  /** The point where it kills itself, if any. */
  readonly point: string | undefined;
  listeningSinceMs?: number;
  /** The signal that the test has sent: SIGKILL or SIGTERM. */
  end?: 'kill' | 'stop';
}

interface MemberOptions {
  readonly name: string;
  readonly dataDir: string;
  readonly env: Env;
  /** Called when it was killed, at its point or by the test. */
  readonly onKilled: (point: string | undefined) => void;
  readonly onFault: (fault: string) => void;
}

/** A `fuel serve` with all roles that is started again, on the same ports, whenever it has ended. */
export class Member {
  readonly name: string;
  /** The point of its next life. */
  nextPoint: () => string | undefined = () => undefined;
  readonly #options: MemberOptions;
  #ports: { readonly api: number; readonly ops: number } | undefined;
  #life: Life | undefined;
  #living: Promise<void> = Promise.resolve();
  #isOver = false;
  #agent: Agent | undefined;

  constructor(options: MemberOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Since when it has been listening, as far as the test has checked; `undefined` while it starts. */
  get listeningSinceMs(): number | undefined {
    const life = this.#life;
    if (life?.command.stdout().includes('"msg":"listening"')) life.listeningSinceMs ??= Date.now();
    return life?.listeningSinceMs;
  }

  /** True if it will kill itself at a point. */
  get isArmed(): boolean {
    return this.#life?.point !== undefined;
  }

  /** Starts it for the first time. */
  async start(): Promise<void> {
    this.#ports = { api: await lastingPort(), ops: await lastingPort() };
    this.#living = this.#live();
  }

  /** Kills it with SIGKILL. Another life follows. */
  kill(): void {
    this.#end('kill');
  }

  /** Stops it with SIGTERM. Another life follows. */
  restart(): void {
    this.#end('stop');
  }

  /**
   * Stops it with SIGTERM, without another life. Resolves when it has ended. Calls `onFault` if it ended with an error.
   */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.#end('stop');
    const late = () => `${this.name} does not end when asked to\n${this.tail}`;
    await within(this.#living, ENDED_WITHIN_MS, late);
  }

  /** Kills it with SIGKILL, without another life. */
  async abandon(): Promise<void> {
    this.#isOver = true;
    this.#life?.command.child.kill('SIGKILL');
    await this.#living;
    await this.#agent?.destroy();
  }

  /** The process id of its current life. */
  get pid(): number | undefined {
    return this.#life?.command.child.pid;
  }

  /** Asks the operations listener; `undefined` if there is no answer. */
  ops(path: string): Promise<Answer | undefined> {
    return this.#fetch(`http://127.0.0.1:${this.#ports?.ops}${path}`, {});
  }

  /** Asks the API; `undefined` if there is no answer. */
  ask(path: string, key: string): Promise<Answer | undefined> {
    return this.#fetch(`https://127.0.0.1:${this.#ports?.api}${BASE_PATH}${path}`, { 'X-API-Key': key });
  }

  /** Waits until it is ready, even if lives end meanwhile, and returns what it answered before. */
  async ready(withinMs: number): Promise<string> {
    let said = '';
    let before = '';
    const isReady = async (): Promise<boolean> => {
      const answer = await this.ops('/readyz');
      before = said;
      said = answer?.text ?? 'nothing';
      return answer?.status === 200;
    };
    await until(isReady, withinMs).catch((cause) => {
      throw new Error(`${this.name} is not ready and says ${said}\n${this.tail}`, { cause });
    });
    return before;
  }

  #end(how: 'kill' | 'stop'): void {
    if (this.#life === undefined || this.#life.end === how) return; // a second SIGTERM would end it at once
    this.#life.end ??= how;
    this.#life.command.child.kill(how === 'kill' ? 'SIGKILL' : 'SIGTERM');
  }

  async #live(): Promise<void> {
    while (!this.#isOver) {
      const life = this.#begin(this.nextPoint());
      const result = await life.command.result;
      this.#lookThrough(result);
      if (life.command.child.signalCode === 'SIGKILL') {
        if (life.end === undefined && life.point === undefined) this.#fault('was killed by others', result);
        else this.#options.onKilled(life.end === 'kill' ? undefined : life.point);
      } else if (life.end === 'kill') {
        this.#options.onKilled(undefined);
      } else if (!isInOrder(life, result)) {
        const how = life.end === 'stop' ? 'when asked to stop' : 'unasked';
        this.#fault(`ended with ${result.code} ${how}`, result);
        await sleep(AFTER_FAULT_MS);
      }
    }
  }

  #begin(point: string | undefined): Life {
    const { dataDir, env } = this.#options;
    const ports = {
      FUEL_LISTEN: `127.0.0.1:${this.#ports?.api}`,
      FUEL_OPS_LISTEN: `127.0.0.1:${this.#ports?.ops}`,
    };
    const crashing = point === undefined ? {} : crashingAt(point);
    const command = startFuel(['serve'], { dataDir, env: { ...env, ...ports, ...crashing } });
    this.#life = { command, point };
    return this.#life;
  }

  /** Checks that a process logs no error, whatever is killed around it. */
  #lookThrough({ stdout, stderr }: CommandResult): void {
    const lines = stdout.split('\n').slice(0, -1);
    for (const line of lines) {
      if (Number(JSON.parse(line).level) >= ERROR_LEVEL)
        this.#options.onFault(`${this.name} logged an error: ${line}`);
    }
    if (stderr !== '') this.#options.onFault(`${this.name} wrote to standard error: ${stderr}`);
  }

  /** The end of the output of its current life. */
  get tail(): string {
    return tail(this.#life?.command.stdout() ?? '');
  }

  #fault(what: string, { stdout, stderr }: CommandResult): void {
    this.#options.onFault(`${this.name} ${what}\n${tail(stdout)}\n${stderr}`);
  }

  async #fetch(url: string, headers: Readonly<Record<string, string>>): Promise<Answer | undefined> {
    const certificate = join(this.#options.dataDir, 'tls-cert.pem');
    if (this.#agent === undefined && existsSync(certificate)) {
      this.#agent = new Agent({ connect: { ca: readFileSync(certificate, 'utf8') } });
    }
    if (this.#agent === undefined) return undefined;
    // A killed process does not answer, which is not a fault.
    return fetchAnswer(url, { method: 'GET', headers, dispatcher: this.#agent }).catch(() => undefined);
  }
}

/** True if it ended correctly: with 0 after SIGTERM, or by the signal before its first output. */
function isInOrder({ end }: Life, { code, stdout, stderr }: CommandResult): boolean {
  if (end !== 'stop') return false;
  return code === 0 || (code === null && stdout + stderr === '');
}

function tail(output: string): string {
  return output.split('\n').slice(-OUTPUT_LINES).join('\n');
}
