import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROLES, type Role } from '../../src/base/config/config.ts';
import type { Log } from '../../src/base/log.ts';
import { loadConfig } from '../../src/engines/engines.ts';
import { Chance } from './core/chance.ts';
import { History } from './core/history.ts';
import { replaceWorld } from './core/simulated-world.ts';
import { type Owner, settled, Timeline } from './core/timeline.ts';
import { type Judged, judgeDeliveries, judgeRepeats } from './judge.ts';
import { judgeRecord } from './judge-records.ts';
import { type Reported, Streaks } from './judge-streaks.ts';
import { Model } from './model.ts';
import { simulatedNetwork } from './parts/network.ts';
import { Operator } from './parts/operator.ts';
import { SimulatedProcess } from './parts/process.ts';
import { Receivers, type Seen } from './parts/receivers.ts';
import { type FaultRates, gateOf, NO_FAULTS } from './stores/gate.ts';
import { type StoreName, Stores } from './stores/stores.ts';
import { Workload } from './workload.ts';

export const START_MS = Date.UTC(2026, 0, 5);
const DAY_MS = 86_400_000;
const RETENTION_DAYS = 10;
/** For how long a name may be taken for where it was, with an attempt that was under way. */
const MAX_NAME_AGE_MS = 45_000;
const HOUR_MS = 3_600_000;
/** Three attempts, those that a storm repeats, and those of a redelivery. */
const MAX_AN_HOUR = 15;
const MAX_RESTART_MS = 20_000;
/** Ed25519 (PKCS #8) of a fixed seed. */
const SEAL_KEY_DER = Buffer.concat([
  Buffer.from('302e020100300506032b657004220420', 'hex'),
  Buffer.alloc(32, 9),
]);
const SEAL_KEY = `-----BEGIN PRIVATE KEY-----\n${SEAL_KEY_DER.toString('base64')}\n-----END PRIVATE KEY-----\n`;

/** What a run is made of: the same plan gives the same history. */
export interface Plan {
  readonly seed: string;
  readonly days: number;
  readonly processes: number;
  readonly accounts: number;
  /** Transactions a day. */
  readonly perDay: number;
  /** Kinds of what goes wrong; without one of them nothing of that kind does. */
  readonly faults: readonly FaultKind[];
}

export const FAULT_KINDS = [
  'ends',
  'slow',
  'unanswered',
  'refused',
  'pauses',
  'outages',
  'receivers',
  'repeats',
  'clocks',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Result {
  readonly plan: Plan;
  readonly violations: readonly string[];
  readonly history: History;
  readonly figures: Readonly<Record<string, number>>;
}

/** What goes wrong in a storm, where its kind may. */
const STORM: FaultRates = { ends: 0.004, slow: 0.02, unanswered: 0.01, refused: 0.01, pauses: 0.003 };

/** One run of the whole service. */
export class Simulation {
  readonly plan: Plan;
  readonly timeline = new Timeline(START_MS);
  readonly history = new History(() => this.timeline.nowMs);
  readonly chance: Chance;
  readonly stores: Stores;
  readonly model = new Model();
  readonly receivers: Receivers;
  readonly operator: Operator;
  readonly processes: SimulatedProcess[] = [];
  readonly violations: string[] = [];
  readonly faultsAtMs: number[] = [];
  readonly seen = new Map<string, Seen[]>();
  /** Which key a host belongs to. */
  readonly hosts = new Map<string, string>();
  readonly mails: string[] = [];
  readonly streaks = new Streaks(() => this.timeline.nowMs);
  rates: FaultRates = NO_FAULTS;
  readonly outages = new Map<string, number>();
  wellSinceMs = START_MS;
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-simulation-'));
  readonly #config;
  readonly #gate;
  #started = 0;
  #ends = 0;

  constructor(plan: Plan) {
    this.plan = plan;
    this.chance = new Chance(plan.seed);
    const groupChance = this.chance.fork('groups');
    const repeats = plan.faults.includes('repeats');
    this.#config = loadConfig(
      {
        FUEL_DATA_DIR: this.#folder,
        FUEL_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
        FUEL_SEAL_KEY: SEAL_KEY,
        FUEL_DELIVERY_RETENTION_DAYS: String(RETENTION_DAYS),
      },
      'command',
    );
    this.stores = new Stores(
      { now: () => Math.floor(this.timeline.nowMs) },
      {
        repeats: () => repeats && this.rates !== NO_FAULTS && groupChance.is(0.02),
        shuffled: (list) =>
          repeats && this.rates !== NO_FAULTS
            ? list
                .map((value) => ({ value, by: groupChance.next() }))
                .sort((a, b) => a.by - b.by)
                .map(({ value }) => value)
            : [...list],
      },
    );
    this.timeline.due = () => this.#due();
    this.receivers = new Receivers(
      () => this.timeline.nowMs,
      this.chance.fork('receivers'),
      (receiver, seen) => this.#sawRequest(receiver.host, seen),
    );
    this.#gate = gateOf({
      timeline: this.timeline,
      chance: this.chance.fork('gate'),
      rates: () => this.rates,
      isReachable: (process, store) => this.#isReachable(process, store),
      onFault: (process, what) => {
        this.faultsAtMs.push(this.timeline.nowMs);
        this.history.add(process.name, what);
      },
      end: (process, why) => this.end(process, why),
      onCall: (what, args) => this.#seeCall(what, args),
    });
    this.operator = new Operator({
      config: this.#config,
      stores: this.stores,
      gate: this.#gate,
      log: this.#log('operator'),
      onFault: (what, error) => this.violation(`${what} failed by a fault of the program: ${stackOf(error)}`),
    });
  }

  /** Runs it to its end, or to the first violation. */
  async run(): Promise<Result> {
    const startedMs = performance.now();
    const restore = replaceWorld(
      this.timeline,
      this.chance.fork('world'),
      simulatedNetwork(this.timeline, this.receivers),
    );
    let isDone = false;
    try {
      const workload = new Workload(this);
      workload.run().then(
        () => {
          isDone = true;
        },
        (error: unknown) => this.violation(`the simulation itself failed: ${stackOf(error)}`),
      );
      await this.timeline.run(Number.MAX_SAFE_INTEGER, () => isDone || this.violations.length > 0);
    } finally {
      for (const process of this.processes) process.kill();
      await settled();
      restore();
      rmSync(this.#folder, { recursive: true, force: true });
    }
    const { timeline, history } = this;
    const seconds = (performance.now() - startedMs) / 1000;
    const days = (timeline.nowMs - START_MS) / DAY_MS;
    return {
      plan: this.plan,
      violations: this.violations,
      history,
      figures: {
        days,
        seconds,
        daysAMinute: (days / seconds) * 60,
        timers: timeline.fired,
        events: this.stores.log.head,
        requests: [...this.seen.values()].reduce((sum, each) => sum + each.length, 0),
        ends: this.#ends,
        faults: this.faultsAtMs.length,
      },
    };
  }

  violation(text: string): void {
    this.history.add('', `VIOLATION ${text}`);
    this.violations.push(text);
  }

  has(kind: FaultKind): boolean {
    return this.plan.faults.includes(kind);
  }

  /** Lets things go wrong for a while. */
  storm(isOn: boolean): void {
    const rate = (kind: keyof FaultRates): number => (isOn && this.has(kind) ? STORM[kind] : 0);
    this.rates = isOn
      ? {
          ends: rate('ends'),
          slow: rate('slow'),
          unanswered: rate('unanswered'),
          refused: rate('refused'),
          pauses: rate('pauses'),
        }
      : NO_FAULTS;
    this.faultsAtMs.push(this.timeline.nowMs);
  }

  start(roles: readonly Role[] = ROLES): SimulatedProcess {
    const chance = this.chance.fork(`process ${this.#started}`);
    const process = new SimulatedProcess({
      name: `p${++this.#started}`,
      roles,
      config: this.#config,
      stores: this.stores,
      gate: this.#gate,
      mailer: () => ({
        send: async (mail) => {
          await this.timeline.pause(chance.between(5, 200));
          if (this.rates !== NO_FAULTS && chance.is(0.2)) throw new Error('the mail server is busy');
          this.mails.push(`${mail.to.join(',')} ${mail.subject}`);
          return { kind: 'sent', rejected: 0 };
        },
        close: () => undefined,
      }),
      log: (of) => this.#log(of.name),
      onFailed: (of, error) => {
        this.violation(`${of.name} ended by itself: ${stackOf(error)}`);
      },
      clockMs: this.has('clocks') ? chance.between(-200, 200) : 0,
    });
    this.history.add(process.name, `starts: ${roles.join(', ')}`);
    this.processes.push(process);
    process.start();
    return process;
  }

  /** As kill -9; another one takes its place some seconds later. */
  end(process: Owner, why: string): void {
    if (!process.isAlive) return;
    this.#ends += 1;
    this.faultsAtMs.push(this.timeline.nowMs);
    this.history.add(process.name, `ends ${why}`);
    (process as SimulatedProcess).kill();
    if (!(process instanceof SimulatedProcess)) return;
    this.processes.splice(this.processes.indexOf(process), 1);
    const { roles } = process.options;
    this.timeline.setFor(undefined, this.chance.between(200, MAX_RESTART_MS), () => this.start(roles));
  }

  /** Reads what is new in the log into the model. */
  readLog(): void {
    this.model.read(this.stores.log.events);
  }

  judged(): Judged {
    this.readLog();
    return {
      model: this.model,
      deliveries: this.stores.queue.entries,
      seen: this.seen,
      nowMs: this.timeline.nowMs,
      retentionMs: RETENTION_DAYS * DAY_MS,
      faultsAtMs: this.faultsAtMs,
      wellSinceMs: this.wellSinceMs,
    };
  }

  /** Compares everything with the model; nothing is under way but attempts. */
  judge(): void {
    const judged = this.judged();
    for (const fault of [...judgeDeliveries(judged), ...judgeRepeats(judged)].slice(0, 5))
      this.violation(fault);
    for (const name of this.stores.groups.groups.keys())
      for (const { event, reason } of this.stores.groups.parked(name))
        this.violation(`${name} has parked event ${event.position} of ${event.stream}: ${reason}`);
    for (const { stream, reason } of this.stores.view.served?.parked.values() ?? [])
      this.violation(`the view has parked an event of ${stream}: ${reason}`);
    for (const { keys } of this.model.accounts.values())
      for (const key of keys.values())
        for (const fault of this.streaks.judge(key, judged.nowMs)) this.violation(fault);
    for (const id of this.model.erased.keys()) {
      if (this.stores.view.served?.rows.get(id)?.shown)
        this.violation(`the view shows transaction ${id}, which was erased`);
      if (this.stores.log.events.some((event) => event?.stream === `transaction-${id}`))
        this.violation(`the log has transaction ${id}, which was erased`);
    }
    for (const each of this.receivers.forbidden) this.violation(`a forbidden address was called: ${each}`);
    const { head } = this.stores.log;
    const at = this.stores.view.served?.checkpoint.position ?? 0;
    if (at < head) this.violation(`the view is at ${at}, and the log's end is ${head}`);
    for (const [name, group] of this.stores.groups.groups) {
      const open = [...group.messages.values()].filter(({ state }) => state !== 'parked').length;
      if (open > 0 || group.position < head)
        this.violation(`the group ${name} is at ${group.position} of ${head}, ${open} open`);
    }
  }

  /** The next thing that is stored and due. */
  #due(): number {
    const { nowMs } = this.timeline;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { progress } of this.stores.queue.entries.values())
      if (progress.dueAtMs !== null) nextMs = Math.min(nextMs, progress.dueAtMs);
    for (const { messages } of this.stores.groups.groups.values())
      for (const { state, dueAtMs } of messages.values())
        if (state !== 'parked') nextMs = Math.min(nextMs, dueAtMs);
    this.readLog();
    for (const { profiles } of this.model.accounts.values())
      for (const { fromMs, toMs } of profiles.values())
        for (const atMs of [fromMs, toMs]) if (atMs > nowMs) nextMs = Math.min(nextMs, atMs);
    return nextMs;
  }

  #sawRequest(host: string, seen: Seen): void {
    this.readLog();
    const prefix = this.hosts.get(host) ?? '';
    const place = `${prefix}/${seen.transactionId}`;
    this.history.add(
      host,
      `gets transaction ${seen.transactionId} (${seen.isTaken ? 'takes it' : 'does not take it'})`,
    );
    const list = this.seen.get(place);
    if (list === undefined) this.seen.set(place, [seen]);
    else list.push(seen);
    const lately = (list ?? []).filter(({ atMs }) => atMs > seen.atMs - HOUR_MS).length;
    if (lately > MAX_AN_HOUR)
      this.violation(`transaction ${seen.transactionId} came to ${prefix} ${lately} times within an hour`);
    const receiver = this.receivers.byHost.get(host);
    if (receiver && seen.address !== receiver.address && seen.atMs > receiver.movedAtMs + MAX_NAME_AGE_MS)
      this.violation(`${host} is called at ${seen.address}, from where it moved`);
    if (!seen.isGenuine) this.violation(`a request to ${host} has a wrong signature`);
    if (seen.transactionId === undefined)
      return void this.violation(`a request to ${host} has no transaction: ${seen.body.slice(0, 200)}`);
    const transaction = this.model.transactions.get(seen.transactionId);
    const isCalm = !this.faultsAtMs.some((ms) => ms > seen.atMs - 60_000);
    if (isCalm && seen.atMs > (transaction?.withdrawnAtMs ?? seen.atMs) + 5_000)
      this.violation(`transaction ${seen.transactionId} is sent, long after it was voided`);
    if (transaction === undefined) {
      const erasedAtMs = this.model.erased.get(seen.transactionId);
      if (erasedAtMs === undefined)
        this.violation(`transaction ${seen.transactionId} is sent and was never recorded`);
      return;
    }
    if (!transaction.owedTo.has(prefix))
      this.violation(`transaction ${transaction.id} is sent to ${prefix}, which is not owed it`);
    const key = this.model.keyOf(prefix)?.key;
    const isItsOwn = key?.urls.some(
      ({ url, fromMs, untilMs }) =>
        new URL(url).host === host && fromMs <= seen.atMs && seen.atMs < untilMs + 60_000,
    );
    const record = JSON.parse(seen.body).data.transaction;
    const wrong = judgeRecord(record, transaction, transaction.numberFor.has(prefix));
    if (wrong !== undefined)
      this.violation(`transaction ${transaction.id} is sent to ${prefix} and ${wrong}`);
    if (!isItsOwn)
      this.violation(
        `transaction ${transaction.id} is sent to ${host}, which is not the webhook of ${prefix}`,
      );
  }

  /** Counts anew what the failure streaks count. */
  #seeCall(what: string, [first, second]: readonly unknown[]): void {
    if (what === 'queue.resetHealth') this.streaks.reset(String(first), Number(second));
    if (what !== 'queue.report') return;
    for (const report of first as readonly (Reported & { readonly leaseToken: string })[]) {
      const entry = this.stores.queue.entries.get(report.id);
      const counts = entry?.progress.leaseToken === report.leaseToken && entry.progress.state === 'pending';
      this.streaks.see(report, counts);
    }
  }

  #isReachable(process: Owner, store: StoreName): boolean {
    const nowMs = this.timeline.nowMs;
    return (
      (this.outages.get(store) ?? 0) <= nowMs && (this.outages.get(`${process.name} ${store}`) ?? 0) <= nowMs
    );
  }

  #log(name: string): Log {
    const line =
      (level: string) =>
      (fields: unknown, text?: string): void => {
        const { err, reason } = (typeof fields === 'object' ? fields : {}) as {
          err?: unknown;
          reason?: unknown;
        };
        const said = text ?? String(fields);
        const cause = err === undefined ? (reason ?? '') : err instanceof Error ? err.message : err;
        if (level === 'error' || level === 'warn') this.history.add(name, `${level}: ${said} ${cause}`);
        if (
          err instanceof Error &&
          !('code' in err) &&
          (err instanceof TypeError || err instanceof RangeError)
        )
          this.violation(`${name} logs a fault of the program: ${said}: ${stackOf(err)}`);
      };
    const quiet = (): void => undefined;
    const log = {
      trace: quiet,
      debug: quiet,
      info: quiet,
      warn: line('warn'),
      error: line('error'),
      fatal: line('error'),
    };
    return { ...log, child: () => log } as unknown as Log;
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
