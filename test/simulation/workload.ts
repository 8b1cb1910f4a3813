import type { Chance } from './core/chance.ts';
import { type Customer, Customers } from './parts/customers.ts';
import { cancelled, confirmed, external, voided } from './parts/lines.ts';
import type { Outcome } from './parts/operator.ts';
import { BAD_MOODS } from './parts/receivers.ts';
import { type Simulation, START_MS } from './simulation.ts';

const DAY_MS = 86_400_000;
const QUIET_EVERY_DAYS = 5;
const CATCH_UP_MS = 90_000;
/** What `--wait` says where it waited in vain. */
const NOT_APPLIED = 'not yet applied by';
const CALM_MS = 120_000;
const SEALED_WITHIN_MS = 75_000;
const LAST_MS = 15 * 60_000;

interface Known {
  readonly id: number;
  readonly accountId: number;
}

/** What operators, customers and receivers do in a run. */
export class Workload {
  readonly #of: Simulation;
  readonly #chance: Chance;
  readonly #customers: Customers;
  readonly #transactions: Known[] = [];
  #nextId = 1_000;
  #hosts = 0;
  #underWay = 0;
  readonly #acts = new Set<string>();

  constructor(simulation: Simulation) {
    this.#of = simulation;
    this.#chance = simulation.chance.fork('workload');
    this.#customers = new Customers(simulation);
  }

  async run(): Promise<void> {
    const { plan, timeline } = this.#of;
    for (let n = 0; n < plan.processes; n++) this.#of.start();
    await timeline.pause(2_000);
    for (let n = 0; n < plan.accounts; n++) await this.#open(n + 1);
    for (let day = 0; day < plan.days; day++) {
      await this.#day(START_MS + day * DAY_MS);
      if (day % QUIET_EVERY_DAYS === QUIET_EVERY_DAYS - 1) await this.#quiet(CATCH_UP_MS);
    }
    for (const receiver of this.#of.receivers.byHost.values()) receiver.mood = 'well';
    this.#of.wellSinceMs = timeline.nowMs;
    await this.#quiet(LAST_MS);
  }

  /** Nothing goes wrong any more; everything is judged when all have caught up. */
  async #quiet(forMs: number): Promise<void> {
    const { timeline, history } = this.#of;
    this.#of.storm(false);
    this.#of.outages.clear();
    const since = timeline.nowMs;
    while (this.#underWay > 0 && timeline.nowMs < since + DAY_MS / 24) await timeline.pause(500);
    if (this.#underWay > 0) return void this.#of.violation(`these do not end: ${[...this.#acts]}`);
    await timeline.pause(forMs);
    history.add('', 'all is quiet');
    this.#of.judge();
    await this.#customers.compareAll();
    await this.#prove();
  }

  async #open(accountId: number): Promise<void> {
    const { operator } = this.#of;
    const chance = this.#chance;
    const ends = chance.is(0.3) ? START_MS + chance.between(2, 60) * DAY_MS : null;
    await operator.change(accountId, [
      { type: 'OpenAccount', accountId, name: `Customer ${accountId}` },
      { type: 'SetContacts', accountId, emails: [`it@customer-${accountId}.example`] },
      { type: 'EnableIntegration', accountId },
      { type: 'SetChargingProfile', accountId, profile: 'basic', fromMs: START_MS - DAY_MS, toMs: ends },
    ]);
    for (let keys = chance.between(1, 2); keys > 0; keys--) await this.#issue(accountId);
  }

  async #issue(accountId: number): Promise<void> {
    const { operator, receivers } = this.#of;
    const host = this.#chance.is(0.8) ? `r${++this.#hosts}.example.com` : undefined;
    const receiver = host === undefined ? undefined : receivers.add(host);
    const terms = { driverMobile: this.#chance.is(0.5), rateLimit: 10_000 };
    const issued = await operator.issue(accountId, terms, host && `https://${host}/hook`);
    if (issued.kind !== 'done') return;
    const { key, prefix, webhookSecret } = issued.value;
    this.#customers.all.push({ accountId, prefix, key, host });
    if (host !== undefined) this.#of.witness.hosts.set(host, prefix);
    if (receiver !== undefined && webhookSecret !== null) receiver.secret = webhookSecret;
  }

  async #day(startMs: number): Promise<void> {
    const { plan, timeline } = this.#of;
    const chance = this.#chance;
    const bursts = Math.max(1, Math.ceil(plan.perDay / 4));
    const acts: { atMs: number; run: () => Promise<void> | void }[] = [];
    const at = (run: () => Promise<void> | void): void =>
      void acts.push({ atMs: startMs + chance.int(DAY_MS - 3_600_000), run });
    for (let n = 0; n < bursts; n++) at(() => this.#import());
    for (let n = chance.between(1, 4); n > 0; n--) at(() => this.#changeSomething());
    for (let n = chance.between(1, 3); n > 0; n--) at(() => this.#customers.page(this.#customers.any()));
    if (this.#of.plan.faults.length > 0 && chance.is(0.6)) at(() => this.#storm());
    if (chance.is(0.1)) at(() => this.#flood());
    if (chance.is(0.3)) at(() => this.#deploy());
    for (let n = chance.between(0, 3); n > 0; n--) at(() => this.#receiverChanges());
    for (const { atMs, run } of acts.sort((a, b) => a.atMs - b.atMs)) {
      if (atMs > timeline.nowMs) await timeline.pause(atMs - timeline.nowMs);
      this.#begin(run);
    }
    const restMs = startMs + DAY_MS - timeline.nowMs;
    if (restMs > 0) await timeline.pause(restMs);
  }

  /** Beside what else is under way. */
  #begin(run: () => Promise<void> | void): void {
    this.#underWay += 1;
    const what = `${run}`.slice(6, 60);
    this.#acts.add(what);
    void Promise.resolve()
      .then(run)
      .catch((error: unknown) => this.#of.violation(`the workload failed: ${(error as Error).stack}`))
      .finally(() => {
        this.#underWay -= 1;
        this.#acts.delete(what);
      });
  }

  /** Everything goes wrong for a minute, while much is done. */
  async #storm(): Promise<void> {
    const { timeline, history, outages } = this.#of;
    const chance = this.#chance;
    history.add('', 'a storm begins');
    this.#of.storm(true);
    for (let n = chance.between(3, 12); n > 0; n--) {
      if (this.#of.has('outages') && chance.is(0.4)) {
        const store = chance.pick(['store', 'subscriptions', 'view', 'queue', 'coordination', 'directory']);
        const whose = chance.is(0.5) ? '' : `p${this.#of.processes.at(-1)?.name.slice(1) ?? ''} `;
        const forMs = chance.between(200, 20_000);
        outages.set(`${whose}${store}`, timeline.nowMs + forMs);
        this.#of.faultsAtMs.push(timeline.nowMs, timeline.nowMs + forMs);
        history.add('', `${whose}${store} can not be reached for ${forMs} ms`);
      }
      if (this.#of.has('clocks') && chance.is(0.2)) this.#of.stepClock();
      if (chance.is(0.05)) this.#begin(() => this.#deploy());
      this.#begin(() => this.#import());
      if (chance.is(0.5)) this.#begin(() => this.#changeSomething());
      if (chance.is(0.5)) this.#begin(() => this.#customers.page(this.#customers.any()));
      if (chance.is(0.2)) this.#begin(() => this.#offAndOn(this.#customers.any()));
      await timeline.pause(chance.between(500, 15_000));
    }
    this.#of.storm(false);
    history.add('', 'the storm ends');
  }

  /** More than a webhook whose receiver fails is allowed. */
  async #flood(): Promise<void> {
    const { accountId } = this.#customers.any();
    const lines: object[] = [];
    for (let n = 80; n > 0; n--) {
      const id = this.#nextId++;
      const created_at = new Date(Math.floor(this.#of.timeline.nowMs)).toISOString();
      lines.push(confirmed(id, { account_id: accountId, created_at, confirmed_at: created_at }));
      this.#transactions.push({ id, accountId });
    }
    await this.#certainly('import of many', () => this.#of.operator.import(lines));
  }

  async #import(): Promise<void> {
    const { timeline } = this.#of;
    const chance = this.#chance;
    const lines: object[] = [];
    const ids: number[] = [];
    for (let n = chance.between(1, 7); n > 0; n--) {
      const customer = this.#customers.any();
      const { accountId } = customer;
      const id = this.#nextId++;
      const createdMs = Math.floor(timeline.nowMs) - chance.int(chance.is(0.1) ? 5 * DAY_MS : 60_000);
      const created_at = new Date(createdMs).toISOString();
      const overrides = { account_id: accountId, created_at, confirmed_at: created_at };
      lines.push(
        chance.is(0.8) ? confirmed(id, overrides) : external(id, { ...overrides, confirmed_at: null }),
      );
      ids.push(id);
      this.#transactions.push({ id, accountId });
    }
    if (chance.is(0.3) && this.#transactions.length > 10) lines.push(this.#withdrawal());
    const wait = chance.is(0.3);
    const give = () => this.#certainly('import', () => this.#of.operator.import(lines, wait));
    const given = chance.is(0.1) ? (await Promise.all([give(), give()]))[0] : await give(); // twice is once
    if (given.kind === 'done' && given.value) for (const id of ids) this.#customers.shown.add(id);
    if (!chance.is(0.25)) return;
    await timeline.pause(chance.between(1_000, 120_000)); // some of it is under way
    await this.#certainly('void', () => this.#of.operator.import([this.#withdrawal(7)]));
  }

  #withdrawal(of = 60): object {
    const chance = this.#chance;
    const { id, accountId } = chance.pick(this.#transactions.slice(-of));
    const at = new Date(Math.floor(this.#of.timeline.nowMs)).toISOString();
    return chance.is(0.5)
      ? voided(id, { account_id: accountId, voided_at: at })
      : cancelled(id, { account_id: accountId, cancelled_at: at });
  }

  /** A command is given again until it is done or refused: twice is once. */
  async #certainly<T>(what: string, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    for (let tries = 1; ; tries++) {
      const outcome = await work();
      this.#of.history.add(
        'operator',
        `${what}: ${outcome.kind}${'reason' in outcome ? ` ${outcome.reason}` : ''}`,
      );
      if (outcome.kind === 'refused' && outcome.reason.includes(NOT_APPLIED) && this.#of.isCalmFor(CALM_MS))
        this.#of.violation(`${what} is not applied, though nothing is wrong: ${outcome.reason}`);
      if (outcome.kind === 'done' || outcome.kind === 'refused' || tries > 30) return outcome;
      await this.#of.timeline.pause(this.#chance.between(300, 3_000));
    }
  }

  async #changeSomething(): Promise<void> {
    const { operator, timeline } = this.#of;
    const chance = this.#chance;
    const customer = this.#customers.any();
    const { accountId, prefix } = customer;
    const change = (what: string, ...commands: Parameters<typeof operator.change>[1]): Promise<unknown> =>
      this.#certainly(`${what} ${accountId} ${prefix}`, () => operator.change(accountId, commands));
    const nowMs = Math.floor(timeline.nowMs);
    switch (chance.int(13)) {
      case 0:
        return this.#switchOff(customer);
      case 1:
        return this.#switchOn(customer);
      case 2:
        await change('integration off', { type: 'DisableIntegration', accountId, reason: 'simulation' });
        return;
      case 3:
      case 4:
        await change('integration on', { type: 'EnableIntegration', accountId });
        return;
      case 5: {
        const toMs = chance.is(0.5) ? null : nowMs + chance.int(3 * DAY_MS);
        await change('profile', {
          type: 'SetChargingProfile',
          accountId,
          profile: 'basic',
          fromMs: nowMs - DAY_MS,
          toMs,
        });
        return;
      }
      case 6:
        await change('webhook off', { type: 'RemoveWebhook', accountId, prefix, reason: 'simulation' });
        return;
      case 7:
      case 8:
        await change('webhook on', { type: 'EnableWebhook', accountId, prefix });
        return;
      case 9:
        return this.#newUrl(customer);
      case 10: {
        if (this.#transactions.length < 30) return;
        const { id } = chance.pick(this.#transactions.slice(-100));
        await this.#certainly(`erase transaction ${id}`, () => operator.erase(id));
        return;
      }
      case 11:
        if (chance.is(0.5)) return this.#redeliver(customer);
        await this.#certainly('rebuild', () => operator.rebuild());
        return;
      default:
        await this.#verify();
    }
  }

  /** Afterwards each that had failed is sent again, but for those that were voided. */
  async #redeliver({ accountId, prefix }: Customer): Promise<void> {
    const { operator, stores, model } = this.#of;
    const failed = [...stores.queue.entries.values()]
      .filter(({ owed, progress }) => owed.prefix === prefix && progress.state === 'failed')
      .map((entry) => ({ entry, cycle: entry.progress.cycle }));
    const redeliver = () => operator.redeliverFailed(accountId, prefix);
    const outcome = await this.#certainly(`redeliver ${prefix}`, redeliver);
    if (outcome.kind !== 'done') return;
    this.#of.readLog();
    for (const { entry, cycle } of failed) {
      const { id, transactionId } = entry.owed;
      const isIn = stores.queue.entries.has(id);
      const mayBeSent = model.transactions.get(transactionId)?.withdrawnAtMs === undefined;
      if (isIn && mayBeSent && model.transactions.has(transactionId) && entry.progress.cycle === cycle)
        this.#of.violation(`transaction ${transactionId} is not redelivered to ${prefix}`);
    }
  }

  /** A new version: each process is stopped in order, and another one takes its place. */
  async #deploy(): Promise<void> {
    for (const process of [...this.#of.processes]) await this.#of.replace(process);
  }

  #receiverChanges(): void {
    const { receivers, timeline, history } = this.#of;
    const chance = this.#chance;
    const known = chance.pick([...receivers.byHost.values()]);
    if (chance.is(0.3)) {
      known.address = receivers.newAddress();
      known.movedAtMs = timeline.nowMs;
      history.add(known.host, `moves to ${known.address}`);
    } else if (this.#of.has('receivers')) {
      known.mood = chance.is(0.4) ? 'well' : chance.is(0.2) ? 'slow' : chance.pick(BAD_MOODS);
      history.add(known.host, `is ${known.mood}`);
    }
  }

  async #newUrl(customer: Customer): Promise<void> {
    const { operator, receivers } = this.#of;
    const { accountId, prefix } = customer;
    const host = `r${++this.#hosts}.example.com`;
    const receiver = receivers.add(host);
    const former = customer.host === undefined ? undefined : receivers.byHost.get(customer.host);
    receiver.secret = former?.secret;
    this.#of.witness.hosts.set(host, prefix);
    const set = await this.#certainly(`webhook of ${prefix} to ${host}`, () =>
      operator.setWebhook(accountId, prefix, `https://${host}/hook`),
    );
    if (set.kind !== 'done') return;
    if (set.value !== null) receiver.secret = set.value;
    customer.host = host;
  }

  async #switchOff(customer: Customer, wait = true): Promise<void> {
    const { operator, timeline } = this.#of;
    const { accountId, prefix } = customer;
    const off = { type: 'SwitchKeyOff', accountId, prefix, reason: 'simulation' } as const;
    const outcome = await this.#certainly(`key off ${prefix}`, () => operator.change(accountId, [off], wait));
    if (outcome.kind !== 'done' || !wait) return;
    this.#customers.offSinceMs.set(prefix, timeline.nowMs);
    await this.#customers.page(customer); // at once
  }

  async #switchOn({ accountId, prefix }: Customer): Promise<void> {
    this.#customers.offSinceMs.delete(prefix);
    const on = { type: 'SwitchKeyOn', accountId, prefix } as const;
    await this.#certainly(`key on ${prefix}`, () => this.#of.operator.change(accountId, [on]));
  }

  /** Some process hears of both at once, and what is imported then is owed. */
  async #offAndOn(customer: Customer): Promise<void> {
    await this.#switchOff(customer, this.#chance.is(0.6));
    await this.#of.timeline.pause(this.#chance.between(10, 2_000));
    await this.#switchOn(customer);
    await this.#import();
  }

  /** The log is what was sealed, and soon all of it is sealed: who seals may have changed meanwhile. */
  async #prove(triesLeft = 3): Promise<void> {
    const { operator, stores, timeline } = this.#of;
    const sinceMs = timeline.nowMs - SEALED_WITHIN_MS;
    const proven = await this.#certainly('prove', () => operator.prove());
    if (proven.kind !== 'done') return void this.#of.violation(`the log can not be proven: ${proven.kind}`);
    const { fault, size, sealedSize } = proven.value;
    if (fault !== undefined) this.#of.violation(`the log is not what was sealed: ${JSON.stringify(fault)}`);
    const recent = stores.log.events.filter((event) => (event?.recordedAtMs ?? 0) > sinceMs).length;
    if (size - sealedSize <= recent + 1) return;
    if (triesLeft === 0)
      return void this.#of.violation(`${size - sealedSize} events are not sealed, and ${recent} are new`);
    await timeline.pause(SEALED_WITHIN_MS);
    await this.#prove(triesLeft - 1);
  }

  /** The nightly verification: with nothing lost there is nothing to repair. */
  async #verify(): Promise<void> {
    const ids = [...new Set(this.#customers.all.map(({ accountId }) => accountId))];
    const startedMs = this.#of.timeline.nowMs;
    const verified = await this.#certainly('verify', () => this.#of.operator.verify(ids));
    if (verified.kind !== 'done' || !this.#of.isCalmFor(CALM_MS, startedMs)) return;
    const { view, deliveries } = verified.value;
    if (view + deliveries > 0)
      this.#of.violation(
        `the verification repaired ${view} rows and ${deliveries} deliveries, though nothing was wrong`,
      );
  }
}
