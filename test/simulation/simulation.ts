import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROLES, type Role } from '../../src/base/config/settings.ts';
import type { LeaseTerms } from '../../src/push/queue/delivery-queue.ts';
import { Chance } from './core/chance.ts';
import { History } from './core/history.ts';
import { replaceWorld } from './core/simulated-world.ts';
import { type Owner, owners, settled, Timeline } from './core/timeline.ts';
import { AccountsWitness } from './judge/accounts.ts';
import { judgeAll } from './judge/all.ts';
import type { Judged } from './judge/deliveries.ts';
import { Model } from './judge/model.ts';
import { RETENTION_DAYS, simulatedConfig } from './parts/config.ts';
import { nextDueMs } from './parts/due.ts';
import { simulatedLog, stackOf } from './parts/log.ts';
import { mailServer } from './parts/mail.ts';
import { simulatedNetwork } from './parts/network.ts';
import { Operator } from './parts/operator.ts';
import { SimulatedProcess } from './parts/process.ts';
import { Receivers } from './parts/receivers.ts';
import { loadJobs } from './parts/thread.ts';
import type { FaultKind, Plan } from './plan.ts';
import { type FaultRates, gateOf, NO_FAULTS, STORM } from './stores/gate.ts';
import { type StoreName, Stores } from './stores/stores.ts';
import { Witness } from './witness.ts';
import { Workload } from './workload.ts';

export const START_MS = Date.UTC(2026, 0, 5);
const DAY_MS = 86_400_000;
/** The default delays between the attempts of a delivery. */
const DELAYS_MS = [30_000, 150_000];
/** The longest time for which a process may be slow or a store unavailable. */
const EXPLAINED_WITHIN_MS = 40_000;
const MAX_RESTART_MS = 20_000;
/** The time to stop: for an attempt, a mail, and a store that is slow or can't be reached. */
const MAX_STOP_MS = 60_000;

export interface Result {
  readonly plan: Plan;
  readonly violations: readonly string[];
  readonly history: History;
  readonly figures: Readonly<Record<string, number>>;
}

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
  readonly processesChangedAtMs: number[] = [];
  readonly witness = new Witness(this);
  readonly accounts = new AccountsWitness(this);
  rates: FaultRates = NO_FAULTS;
  /** True if a lease stalls for certain. */
  stallsLease: (terms: LeaseTerms) => boolean = () => false;
  readonly outages = new Map<string, number>();
  /** When a clock was wrong by minutes or more, so that everything written then has wrong times. */
  readonly wrongTimes: { readonly fromMs: number; untilMs: number }[] = [];
  wellSinceMs = START_MS;
  readonly #folder = mkdtempSync(join(tmpdir(), 'fuel-simulation-'));
  readonly #config;
  readonly #gate;
  #jobs: Awaited<ReturnType<typeof loadJobs>> = {};
  #started = 0;
  #ends = 0;

  constructor(plan: Plan) {
    this.plan = plan;
    this.chance = new Chance(plan.seed);
    const groupChance = this.chance.fork('groups');
    const repeats = plan.faults.includes('repeats');
    this.#config = simulatedConfig(this.#folder);
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
    this.timeline.due = () => nextDueMs(this);
    this.receivers = new Receivers(
      () => this.timeline.nowMs,
      this.chance.fork('receivers'),
      (receiver, seen) => this.witness.sawRequest(receiver.host, seen),
    );
    this.#gate = gateOf({
      timeline: this.timeline,
      chance: this.chance.fork('gate'),
      rates: () => this.rates,
      stallsLease: (terms) => this.stallsLease(terms),
      isReachable: (process, store) => this.#isReachable(process, store),
      onFault: (process, what) => {
        this.faultsAtMs.push(this.timeline.nowMs);
        this.history.add(process.name, what);
      },
      end: (process, why) => this.end(process, why),
      onCall: (what, [first]) => {
        if (what === 'queue.report') this.witness.sawReports(first as never);
        if (what === 'accounts.write') this.accounts.sawWrite(first as never);
      },
    });
    this.operator = new Operator({
      config: this.#config,
      stores: this.stores,
      gate: this.#gate,
      log: simulatedLog('operator', this),
      onFault: (what, error) => this.violation(`${what} failed by a fault of the program: ${stackOf(error)}`),
    });
  }

  /** Runs to the end or to the first violation. */
  async run(): Promise<Result> {
    const startedMs = performance.now();
    this.#jobs = await loadJobs();
    const restore = replaceWorld(this.timeline, this.chance.fork('world'), {
      network: simulatedNetwork(this.timeline, this.receivers),
      mail: mailServer(this),
      thread: (_, { workerData }) => present().thread(workerData) as never,
      listen: (server, place, listening) =>
        present().listen(server as never, (place as { port: number }).port, listening),
    });
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
        requests: this.witness.requests,
        mails: this.witness.mails.length,
        ends: this.#ends,
        faults: this.faultsAtMs.length,
      },
    };
  }

  violation(text: string): void {
    this.history.add('', `VIOLATION ${text}`);
    this.violations.push(text);
  }

  /** True if nothing went wrong for this long before a moment, nor since. */
  isCalmFor(ms: number, beforeMs = this.timeline.nowMs): boolean {
    return !this.faultsAtMs.some((faultMs) => faultMs > beforeMs - ms);
  }

  has(kind: FaultKind): boolean {
    return this.plan.faults.includes(kind);
  }

  /** Starts or ends a time in which things go wrong. */
  storm(isOn: boolean): void {
    const kinds = this.plan.faults.filter((kind) => kind in STORM) as (keyof FaultRates)[];
    const rates = Object.fromEntries(kinds.map((kind) => [kind, STORM[kind]]));
    this.rates = isOn ? { ...NO_FAULTS, ...rates } : NO_FAULTS;
    this.faultsAtMs.push(this.timeline.nowMs);
  }

  start(roles: readonly Role[] = ROLES): SimulatedProcess {
    const chance = this.chance.fork(`process ${this.#started}`);
    const process = new SimulatedProcess({
      name: `p${++this.#started}`,
      roles,
      config: this.#config,
      timeline: this.timeline,
      jobs: this.#jobs,
      stores: this.stores,
      gate: this.#gate,
      log: (of) => simulatedLog(of.name, this),
      onFailed: (of, error) => {
        this.violation(`${of.name} ended by itself: ${stackOf(error)}`);
      },
      clockMs: this.has('clocks') ? chance.between(-200, 200) : 0,
    });
    this.history.add(process.name, `starts: ${roles.join(', ')}`);
    this.processes.push(process);
    this.processesChangedAtMs.push(this.timeline.nowMs);
    process.start();
    return process;
  }

  /** Kills a process like kill -9. Another one replaces it some seconds later. */
  end(process: Owner, why: string): void {
    if (!process.isAlive) return;
    this.#ends += 1;
    this.faultsAtMs.push(this.timeline.nowMs);
    this.processesChangedAtMs.push(this.timeline.nowMs);
    this.history.add(process.name, `ends ${why}`);
    (process as SimulatedProcess).kill();
    if (!(process instanceof SimulatedProcess)) return;
    const at = this.processes.indexOf(process);
    if (at < 0) return; // it was stopping
    this.processes.splice(at, 1);
    const { roles } = process.options;
    this.timeline.setFor(undefined, this.chance.between(200, MAX_RESTART_MS), () => this.start(roles));
  }

  /** Replaces a process like a deployment: another one starts, and this one is stopped cleanly. */
  async replace(process: SimulatedProcess): Promise<void> {
    const at = this.processes.indexOf(process);
    if (at < 0) return;
    this.processes.splice(at, 1);
    this.start(process.options.roles);
    await this.timeline.pause(this.chance.between(0, 5_000));
    this.history.add(process.name, 'is stopped');
    const stopped = process.stop().then(
      () => true,
      (error: unknown) => this.violation(`${process.name} stops with an error: ${stackOf(error)}`),
    );
    if ((await Promise.race([stopped, this.timeline.pause(MAX_STOP_MS)])) === undefined && process.isAlive)
      this.violation(`${process.name} does not stop`);
    this.processesChangedAtMs.push(this.timeline.nowMs);
  }

  /** True if a clock is wrong, or was when a request that arrives now was sent. */
  isClockWrong(): boolean {
    return this.wrongTimes.some(({ untilMs }) => untilMs > this.timeline.nowMs - 5_000);
  }

  /** Reads the new events of the log into the model. */
  readLog(): void {
    this.model.read(this.stores.log.after(this.model.position));
  }

  judged(): Judged {
    this.readLog();
    return {
      model: this.model,
      deliveries: this.stores.queue.entries,
      seen: this.witness.seen,
      nowMs: this.timeline.nowMs,
      retentionMs: RETENTION_DAYS * DAY_MS,
      delaysMs: DELAYS_MS,
      faultsAtMs: this.faultsAtMs,
      explainedWithinMs: EXPLAINED_WITHIN_MS,
      wellSinceMs: this.wellSinceMs,
      wrongTimes: this.wrongTimes,
    };
  }

  /** Compares everything with the model while nothing but attempts is under way. */
  judge(): void {
    for (const fault of judgeAll(this)) this.violation(fault);
  }

  #isReachable(process: Owner, store: StoreName): boolean {
    const nowMs = this.timeline.nowMs;
    return (
      (this.outages.get(store) ?? 0) <= nowMs && (this.outages.get(`${process.name} ${store}`) ?? 0) <= nowMs
    );
  }
}

/** Returns the process whose code is running. */
function present(): SimulatedProcess {
  const owner = owners.getStore();
  if (owner instanceof SimulatedProcess) return owner;
  throw new Error(`${owner?.name ?? 'the world'} has no threads and listens nowhere`);
}
