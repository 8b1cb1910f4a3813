import type { Chance } from './core/chance.ts';
import { assertSealed } from './parts/assert-sealed.ts';
import { PACED_MOODS } from './parts/capacity.ts';
import { Changes, type Known } from './parts/changes.ts';
import { setWrong, stepClock } from './parts/clocks.ts';
import { type Customer, Customers } from './parts/customers.ts';
import { killInAttempt } from './parts/kills.ts';
import { cancelled, confirmed, external, voided } from './parts/lines.ts';
import { BAD_MOODS, GOOD_MOODS } from './parts/receivers.ts';
import { stallLease } from './parts/stalls.ts';
import { type Simulation, START_MS } from './simulation.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const QUIET_EVERY_DAYS = 5;
const CATCH_UP_MS = 90_000;
const LAST_MS = 15 * 60_000;
/** The transactions of a burst, more in a row than a webhook may fail. */
const MORE_THAN_MAY_FAIL = 80;

/** The course of a run: days, storms, deployments, and quiet times in which everything is judged. */
export class Workload {
  readonly #of: Simulation;
  readonly #chance: Chance;
  /** The chance of faults that are aimed at a moment. */
  readonly #aimed: Chance;
  readonly #customers: Customers;
  readonly #changes: Changes;
  readonly #transactions: Known[] = [];
  #nextId = 1_000;
  #underWay = 0;
  readonly #acts = new Set<string>();

  constructor(simulation: Simulation) {
    this.#of = simulation;
    this.#chance = simulation.chance.fork('workload');
    this.#aimed = simulation.chance.fork('kills');
    this.#customers = new Customers(simulation);
    this.#changes = new Changes(simulation, this.#chance, this.#customers, this.#transactions);
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
    for (const receiver of this.#of.receivers.byHost.values()) receiver.become('well', timeline.nowMs);
    this.#of.wellSinceMs = timeline.nowMs;
    await this.#quiet(LAST_MS);
  }

  /** Lets nothing go wrong any more, and judges everything when all have caught up. */
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
    await assertSealed(this.#of, this.#changes);
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
    const host = this.#chance.is(0.8) ? `r${++this.#changes.hosts}.example.com` : undefined;
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
    for (let n = chance.between(1, 4); n > 0; n--) at(() => this.#changes.something());
    for (let n = chance.between(1, 3); n > 0; n--) at(() => this.#customers.page(this.#customers.any()));
    if (this.#of.plan.faults.length > 0 && chance.is(0.6)) at(() => this.#storm());
    if (chance.is(0.1)) at(() => this.#burst(MORE_THAN_MAY_FAIL));
    if (chance.is(0.3)) at(() => this.#burst());
    if (chance.is(0.2)) at(() => this.#wellAgain());
    if (this.#of.has('steps') && chance.is(0.5)) {
      const aheadMs = chance.pick([5 * MINUTE_MS, 2 * HOUR_MS, -5 * MINUTE_MS, -2 * HOUR_MS]);
      at(() => setWrong(this.#of, { aheadMs, forMs: chance.between(500, 90_000), dies: chance.is(0.4) }));
    }
    if (this.#of.has('steps') && chance.is(0.3)) {
      // This is at the time of the hourly removal.
      const atMs = startMs + chance.int(23) * HOUR_MS + 22.5 * MINUTE_MS;
      const run = () => setWrong(this.#of, { aheadMs: 100 * DAY_MS, forMs: 60_000, dies: chance.is(0.4) });
      acts.push({ atMs, run });
    }
    if (chance.is(0.3)) at(() => this.#deploy());
    const aim = (run: () => Promise<void>): void =>
      void acts.push({ atMs: startMs + this.#aimed.int(DAY_MS - HOUR_MS), run });
    if (this.#of.has('ends') && this.#aimed.is(0.5)) aim(() => this.#kill());
    if (this.#of.has('stalls')) aim(() => this.#stall());
    for (let n = chance.between(0, 3); n > 0; n--) at(() => this.#receiverChanges());
    for (const { atMs, run } of acts.sort((a, b) => a.atMs - b.atMs)) {
      if (atMs > timeline.nowMs) await timeline.pause(atMs - timeline.nowMs);
      this.#begin(run);
    }
    const restMs = startMs + DAY_MS - timeline.nowMs;
    if (restMs > 0) await timeline.pause(restMs);
  }

  /** Starts work that runs concurrently with other work. */
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

  /** Lets everything go wrong for a minute while a lot is done. */
  async #storm(): Promise<void> {
    const { timeline, history, outages } = this.#of;
    const chance = this.#chance;
    history.add('', 'a storm begins');
    this.#of.storm(true);
    for (let n = chance.between(3, 12); n > 0; n--) {
      if (this.#of.has('outages') && chance.is(0.4)) {
        const store = chance.pick([
          'store',
          'subscriptions',
          'view',
          'queue',
          'coordination',
          'directory',
          'accounts',
        ]);
        const whose = chance.is(0.5) ? '' : `p${this.#of.processes.at(-1)?.name.slice(1) ?? ''} `;
        const forMs = chance.between(200, 20_000);
        outages.set(`${whose}${store}`, timeline.nowMs + forMs);
        this.#of.faultsAtMs.push(timeline.nowMs, timeline.nowMs + forMs);
        history.add('', `${whose}${store} cannot be reached for ${forMs} ms`);
      }
      if (this.#of.has('clocks') && chance.is(0.2)) stepClock(this.#of);
      if (chance.is(0.05)) this.#begin(() => this.#deploy());
      this.#begin(() => this.#import());
      if (chance.is(0.5)) this.#begin(() => this.#changes.something());
      if (chance.is(0.5)) this.#begin(() => this.#customers.page(this.#customers.any()));
      if (chance.is(0.2)) this.#begin(() => this.#offAndOn(this.#customers.any()));
      await timeline.pause(chance.between(500, 15_000));
      this.#of.faultsAtMs.push(timeline.nowMs);
    }
    this.#of.storm(false);
    history.add('', 'the storm ends');
    if (chance.is(0.3)) await this.#burst();
  }

  /** Imports more than a receiver can accept at once. */
  async #burst(count = this.#chance.between(10, 40), { accountId } = this.#customers.any()): Promise<void> {
    const lines: object[] = [];
    for (let n = count; n > 0; n--) {
      const id = this.#nextId++;
      const created_at = new Date(Math.floor(this.#of.timeline.nowMs)).toISOString();
      lines.push(confirmed(id, { account_id: accountId, created_at, confirmed_at: created_at }));
      this.#transactions.push({ id, accountId });
    }
    await this.#changes.certainly('import of many', () => this.#of.operator.import(lines));
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
    const give = () => this.#changes.certainly('import', () => this.#of.operator.import(lines, wait));
    const given = chance.is(0.1) ? (await Promise.all([give(), give()]))[0] : await give(); // doing it twice is the same as once
    if (given.kind === 'done' && given.value) for (const id of ids) this.#customers.shown.add(id);
    if (!chance.is(0.25)) return;
    await timeline.pause(chance.between(1_000, 120_000)); // some of it is under way
    await this.#changes.certainly('void', () => this.#of.operator.import([this.#withdrawal(7)]));
  }

  #withdrawal(of = 60): object {
    const chance = this.#chance;
    const { id, accountId } = chance.pick(this.#transactions.slice(-of));
    const at = new Date(Math.floor(this.#of.timeline.nowMs)).toISOString();
    return chance.is(0.5)
      ? voided(id, { account_id: accountId, voided_at: at })
      : cancelled(id, { account_id: accountId, cancelled_at: at });
  }

  /** Deploys a new version: each process is stopped cleanly, and another one replaces it. */
  async #deploy(): Promise<void> {
    for (const process of [...this.#of.processes]) await this.#of.replace(process);
  }

  #kill(): Promise<void> {
    const customer = this.#aimed.pick(this.#customers.all);
    return killInAttempt(this.#of, customer, () => this.#burst(this.#aimed.between(10, 20), customer));
  }

  #stall(): Promise<void> {
    const customer = this.#aimed.pick(this.#customers.all);
    return stallLease(this.#of, customer, (count) => this.#burst(count, customer));
  }

  #receiverChanges(): void {
    const { receivers, timeline, history } = this.#of;
    const chance = this.#chance;
    const all = [...receivers.byHost.values()];
    if (all.length === 0) return; // no key has a webhook yet
    const known = chance.pick(all);
    if (chance.is(0.3)) {
      known.move(receivers.newAddress(), timeline.nowMs);
      history.add(known.host, `moves to ${known.address}`);
    } else {
      const isBad = this.#of.has('receivers') && chance.is(0.4);
      known.become(chance.pick(isBad ? BAD_MOODS : GOOD_MOODS), timeline.nowMs);
      history.add(known.host, `is ${known.mood}`);
    }
  }

  /** Makes a receiver well again, so that everything that waited for it comes at once, with more. */
  async #wellAgain(): Promise<void> {
    const { receivers, timeline, history, model, operator } = this.#of;
    const isOff = ({ prefix }: Customer): boolean => model.keyOf(prefix)?.key.webhook?.isDisabled === true;
    const customer = this.#customers.all.find(isOff) ?? this.#customers.any();
    const receiver = receivers.byHost.get(customer.host ?? '');
    if (receiver === undefined) return;
    receiver.become(this.#chance.pick(PACED_MOODS), timeline.nowMs);
    history.add(receiver.host, `is ${receiver.mood}`);
    const { accountId, prefix } = customer;
    await this.#changes.certainly(`webhook on ${accountId} ${prefix}`, () =>
      operator.change(accountId, [{ type: 'EnableWebhook', accountId, prefix }]),
    );
    if (this.#chance.is(0.5)) await this.#changes.redeliver(customer);
    await this.#burst(undefined, customer);
  }

  /** Switches off and on, so that some process hears of both at once. What is imported then is owed. */
  async #offAndOn(customer: Customer): Promise<void> {
    await this.#changes.switchOff(customer, this.#chance.is(0.6));
    await this.#of.timeline.pause(this.#chance.between(10, 2_000));
    await this.#changes.switchOn(customer);
    await this.#import();
  }
}
