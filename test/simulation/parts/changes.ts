import type { Chance } from '../core/chance.ts';
import type { Simulation } from '../simulation.ts';
import type { Customer, Customers } from './customers.ts';
import type { Outcome } from './operator.ts';

const DAY_MS = 86_400_000;
const CALM_MS = 120_000;
/** The text of `--wait` when it has waited in vain. */
const NOT_APPLIED = 'not yet applied by';

export interface Known {
  readonly id: number;
  readonly accountId: number;
}

/** The changes that an operator makes. */
export class Changes {
  /** The number of receivers that there ever were. */
  hosts = 0;
  readonly #of: Simulation;
  readonly #chance: Chance;
  readonly #customers: Customers;
  readonly #transactions: readonly Known[];

  constructor(simulation: Simulation, chance: Chance, customers: Customers, transactions: readonly Known[]) {
    this.#of = simulation;
    this.#chance = chance;
    this.#customers = customers;
    this.#transactions = transactions;
  }

  /** Repeats a command until it is done or refused, since twice is the same as once. */
  async certainly<T>(what: string, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
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

  async something(): Promise<void> {
    const { operator, timeline } = this.#of;
    const chance = this.#chance;
    const customer = this.#customers.any();
    const { accountId, prefix } = customer;
    const change = (what: string, ...commands: Parameters<typeof operator.change>[1]): Promise<unknown> =>
      this.certainly(`${what} ${accountId} ${prefix}`, () => operator.change(accountId, commands));
    const nowMs = Math.floor(timeline.nowMs);
    switch (chance.int(13)) {
      case 0:
        return this.switchOff(customer);
      case 1:
        return this.switchOn(customer);
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
        await this.certainly(`erase transaction ${id}`, () => operator.erase(id));
        return;
      }
      case 11:
        if (chance.is(0.5)) return this.redeliver(customer);
        await this.certainly('rebuild', () => operator.rebuild());
        return;
      default:
        await this.#verify();
    }
  }

  /** Redelivers. Afterwards every failed delivery is sent again, except voided ones. */
  async redeliver({ accountId, prefix }: Customer): Promise<void> {
    const { operator, stores, model } = this.#of;
    const failed = [...stores.queue.entries.values()]
      .filter(({ owed, progress }) => owed.prefix === prefix && progress.state === 'failed')
      .map((entry) => ({ entry, cycle: entry.progress.cycle }));
    const redeliver = () => operator.redeliverFailed(accountId, prefix);
    const outcome = await this.certainly(`redeliver ${prefix}`, redeliver);
    if (outcome.kind !== 'done') return;
    this.#of.readLog();
    for (const { entry, cycle } of failed) {
      const { id, transactionId } = entry.owed;
      const now = stores.queue.get(id);
      const mayBeSent = model.transactions.get(transactionId)?.withdrawnAtMs === undefined;
      if (mayBeSent && model.transactions.has(transactionId) && now?.progress.cycle === cycle)
        this.#of.violation(`transaction ${transactionId} is not redelivered to ${prefix}`);
    }
  }

  async #newUrl(customer: Customer): Promise<void> {
    const { operator, receivers } = this.#of;
    const { accountId, prefix } = customer;
    const host = `r${++this.hosts}.example.com`;
    const receiver = receivers.add(host);
    const former = customer.host === undefined ? undefined : receivers.byHost.get(customer.host);
    receiver.secret = former?.secret;
    this.#of.witness.hosts.set(host, prefix);
    const set = await this.certainly(`webhook of ${prefix} to ${host}`, () =>
      operator.setWebhook(accountId, prefix, `https://${host}/hook`),
    );
    if (set.kind !== 'done') return;
    if (set.value !== null) receiver.secret = set.value;
    customer.host = host;
  }

  async switchOff(customer: Customer, wait = true): Promise<void> {
    const { operator, timeline } = this.#of;
    const { accountId, prefix } = customer;
    const off = { type: 'SwitchKeyOff', accountId, prefix, reason: 'simulation' } as const;
    const outcome = await this.certainly(`key off ${prefix}`, () => operator.change(accountId, [off], wait));
    if (outcome.kind !== 'done' || !wait) return;
    this.#customers.offSinceMs.set(prefix, timeline.nowMs);
    await this.#customers.page(customer); // at once
  }

  async switchOn({ accountId, prefix }: Customer): Promise<void> {
    this.#customers.offSinceMs.delete(prefix);
    const on = { type: 'SwitchKeyOn', accountId, prefix } as const;
    await this.certainly(`key on ${prefix}`, () => this.#of.operator.change(accountId, [on]));
  }

  /** Runs the nightly verification. If nothing was lost, there is nothing to repair. */
  async #verify(): Promise<void> {
    const ids = [...new Set(this.#customers.all.map(({ accountId }) => accountId))];
    const startedMs = this.#of.timeline.nowMs;
    const verified = await this.certainly('verify', () => this.#of.operator.verify(ids));
    if (verified.kind !== 'done' || !this.#of.isCalmFor(CALM_MS, startedMs)) return;
    const { view, deliveries } = verified.value;
    if (view + deliveries > 0)
      this.#of.violation(
        `the verification repaired ${view} rows and ${deliveries} deliveries, though nothing was wrong`,
      );
  }
}
