import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Random } from '../../src/customers/sample/random.ts';
import { WebhookReceiver } from '../support/deliveries/webhook-receiver.ts';
import { atEndOfFile } from '../support/end-of-file.ts';
import { type Env, folder } from '../support/service/commands.ts';
import { Operator, openForUse } from '../support/service/operator.ts';
import { EMBEDDED, type Engines } from './engines.ts';
import { LastingOperator } from './lasting-operator.ts';
import { Member } from './member.ts';
import { drawAll, type PointLists } from './point-lists.ts';
import { Receivers } from './receivers.ts';

/** A long time, since the machine may be busy and each process is restarted until it is ready. */
const READY_WITHIN_MS = 90_000;
const FIRST_LIVES_ARMED = 0.7;
export const RETRY_DELAYS_MS = [300, 1_000];

/** The purpose of an account. Each has a key, but its access changes differently. */
type Purpose = 'steady' | 'key' | 'webhook' | 'integration' | 'bulk';

const ACCOUNTS: readonly (readonly [account: number, purpose: Purpose])[] = [
  [1, 'steady'],
  [2, 'steady'],
  [11, 'key'],
  [12, 'key'],
  [21, 'webhook'],
  [31, 'integration'],
  [41, 'bulk'],
];

export interface Customer {
  readonly account: number;
  readonly purpose: Purpose;
  readonly key: string;
  readonly prefix: string;
  /** The webhook's path at the receivers; `undefined` without one. */
  readonly path: string | undefined;
}

/** A process or engine that was killed. */
export interface Kill {
  readonly what: string;
  /** The point, or `at random`. */
  readonly how: string;
  readonly fromMs: number;
  /** The time at which an engine answered again. For a process it is the same as `fromMs`. */
  readonly untilMs: number;
}

interface StageOptions {
  readonly engines: Engines;
  readonly members: number;
}

const open = new Set<Stage>();

atEndOfFile(async () => {
  for (const stage of open) await stage.abandon(); // left by a test that timed out
});

/** One run: processes of the service on one store, customers and their receivers, kills and faults. */
export class Stage {
  readonly dataDir = join(folder(), 'data');
  readonly kills: Kill[] = [];
  readonly faults: string[] = [];
  readonly customers: Customer[] = [];
  readonly receivers: Receivers;
  readonly #pushEnv: Env;
  #engines: Engines = EMBEDDED;
  #lasting: LastingOperator | undefined;
  #members: readonly Member[] = [];
  /** The current work of the run, to be shown. */
  doing = 'starting';
  /** The finished pieces of the workload. Some must be done between two kills of an engine. */
  done = 0;
  /** How often a piece was repeated because a store was unavailable, and the last error. */
  retries = 0;
  lastRefusal = '';

  private constructor(receiver: WebhookReceiver) {
    this.receivers = new Receivers(receiver);
    const ca = join(folder(), 'receiver-ca.pem');
    writeFileSync(ca, receiver.ca);
    this.#pushEnv = {
      FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
      FUEL_WEBHOOK_CA: ca,
      FUEL_WEBHOOK_RETRY_DELAYS: RETRY_DELAYS_MS.map((ms) => `${ms}ms`).join(),
    };
  }

  static async prepare(options: StageOptions): Promise<Stage> {
    const stage = new Stage(await WebhookReceiver.open());
    open.add(stage);
    stage.moveTo(options);
    return stage;
  }

  get engines(): Engines {
    return this.#engines;
  }

  get members(): readonly Member[] {
    return this.#members;
  }

  /** The environment of every process and command, except the data directory. */
  get env(): Env {
    return { ...this.#engines.env, ...this.#pushEnv };
  }

  /** Moves the run to these engines, with new processes. The former ones have ended. */
  moveTo({ engines, members }: StageOptions): void {
    this.#engines = engines;
    this.#members = Array.from({ length: members }, (_, index) => this.#member(`process ${index + 1}`));
  }

  /** Starts the processes, whose first lives may end at points of their start, and creates the customers. */
  async start({
    points,
    seed,
  }: {
    readonly points: PointLists['start'];
    readonly seed: number;
  }): Promise<void> {
    const random = new Random(seed);
    const drawn = drawAll(points, random);
    for (const member of this.members) {
      const lives = random.chance(FIRST_LIVES_ARMED) ? [drawn.next().value] : [];
      member.nextPoint = () => lives.pop();
    }
    await Promise.all(this.members.map((member) => member.start()));
    await this.ready();
    for (const member of this.members) if (member.isArmed) member.kill();
    await this.ready();
    for (const [account, purpose] of ACCOUNTS) this.customers.push(await this.#customer(account, purpose));
  }

  /** Ends everything that is still running. */
  async abandon(): Promise<void> {
    open.delete(this);
    await Promise.all(this.members.map((member) => member.abandon()));
    await this.#lasting?.close();
  }

  /**
   * The operator. Where the events are embedded, each call opens the files again, so that at times no process has them
   * open: this process also looks at their bytes, which ends its locks on them. Connections to engines are kept
   * otherwise.
   */
  get operator(): Operator {
    const env = { ...this.env, FUEL_DATA_DIR: this.dataDir };
    if (this.#engines.env.EVENTSTORE_URL === undefined) return new Operator(env);
    this.#lasting ??= new LastingOperator(env);
    return this.#lasting;
  }

  withPurpose(...purposes: readonly Purpose[]): Customer[] {
    return this.customers.filter(({ purpose }) => purposes.includes(purpose));
  }

  fault(text: string): void {
    this.faults.push(`${new Date().toISOString()} ${text}`);
  }

  killed(what: string, how: string, fromMs = Date.now()): void {
    this.kills.push({ what, how, fromMs, untilMs: Date.now() });
  }

  /** Waits until every process is ready. */
  async ready(): Promise<void> {
    for (const member of this.members) await member.ready(READY_WITHIN_MS);
  }

  /** Waits like `ready` after the last kill. Reports a fault if it takes longer than allowed. Returns the duration. */
  async readyAfterKills(): Promise<number> {
    const lastMs = Math.max(...this.kills.map(({ untilMs }) => untilMs));
    const took = await Promise.all(
      this.members.map(async (member) => {
        const before = await member.ready(READY_WITHIN_MS);
        const ms = Date.now() - lastMs;
        // A process that is ready when it is first asked may have been so for long: commands go on after the last kill.
        if (before !== '' && ms > (this.engines.readyWithinMs ?? Infinity))
          this.fault(
            `${member.name} was ready ${ms} ms after the last kill, and said before: ${before}\n${member.tail}`,
          );
        return ms;
      }),
    );
    return Math.max(...took);
  }

  #member(name: string): Member {
    return new Member({
      name,
      dataDir: this.dataDir,
      env: this.env,
      onKilled: (point) => this.killed('a process', point ?? 'at random'),
      onFault: (fault) => this.fault(fault),
    });
  }

  async #customer(account: number, purpose: Purpose): Promise<Customer> {
    const path = purpose === 'bulk' ? undefined : `/hook/${account}`;
    const wishes = path === undefined ? {} : { webhookUrl: this.receivers.open(path) };
    const { key, prefix } = await this.operator.provision(account, openForUse(account), wishes);
    return { account, purpose, key, prefix, path };
  }
}
