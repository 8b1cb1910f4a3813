import type { Chance } from './core/chance.ts';
import { judgeRecord } from './judge-records.ts';
import { cancelled, confirmed, external, voided } from './parts/lines.ts';
import type { Outcome } from './parts/operator.ts';
import type { SimulatedProcess } from './parts/process.ts';
import { BAD_MOODS } from './parts/receivers.ts';
import { type Simulation, START_MS } from './simulation.ts';

const DAY_MS = 86_400_000;
const QUIET_EVERY_DAYS = 5;
const CATCH_UP_MS = 90_000;
const LAST_MS = 15 * 60_000;

interface Customer {
  readonly accountId: number;
  readonly prefix: string;
  readonly key: string;
  host: string | undefined;
}

interface Known {
  readonly id: number;
  readonly accountId: number;
}

/** What operators, customers and receivers do in a run. */
export class Workload {
  readonly #of: Simulation;
  readonly #chance: Chance;
  readonly #customers: Customer[] = [];
  readonly #transactions: Known[] = [];
  /** Times of switch-offs that every process has applied, by key. */
  readonly #offSinceMs = new Map<string, number>();
  #nextId = 1_000;
  #hosts = 0;
  #underWay = 0;
  readonly #acts = new Set<string>();

  constructor(simulation: Simulation) {
    this.#of = simulation;
    this.#chance = simulation.chance.fork('workload');
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
    for (const customer of this.#customers) await this.#page(customer, true);
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
    const { operator, receivers, hosts } = this.#of;
    const host = this.#chance.is(0.8) ? `r${++this.#hosts}.example.com` : undefined;
    const receiver = host === undefined ? undefined : receivers.add(host);
    const terms = { driverMobile: this.#chance.is(0.5), rateLimit: 10_000 };
    const issued = await operator.issue(accountId, terms, host && `https://${host}/hook`);
    if (issued.kind !== 'done') return;
    const { key, prefix, webhookSecret } = issued.value;
    this.#customers.push({ accountId, prefix, key, host });
    if (host !== undefined) hosts.set(host, prefix);
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
    for (let n = chance.between(1, 3); n > 0; n--) at(() => this.#page(chance.pick(this.#customers), false));
    if (this.#of.plan.faults.length > 0 && chance.is(0.6)) at(() => this.#storm());
    if (chance.is(0.1)) at(() => this.#flood());
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
      this.#begin(() => this.#import());
      if (chance.is(0.5)) this.#begin(() => this.#changeSomething());
      if (chance.is(0.5)) this.#begin(() => this.#page(chance.pick(this.#customers), false));
      await timeline.pause(chance.between(500, 15_000));
    }
    this.#of.storm(false);
    history.add('', 'the storm ends');
  }

  /** More than a webhook whose receiver fails is allowed. */
  async #flood(): Promise<void> {
    const { accountId } = this.#chance.pick(this.#customers);
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
    for (let n = chance.between(1, 7); n > 0; n--) {
      const customer = chance.pick(this.#customers);
      const { accountId } = customer;
      const id = this.#nextId++;
      const createdMs = Math.floor(timeline.nowMs) - chance.int(chance.is(0.1) ? 5 * DAY_MS : 60_000);
      const created_at = new Date(createdMs).toISOString();
      const overrides = { account_id: accountId, created_at, confirmed_at: created_at };
      lines.push(
        chance.is(0.8) ? confirmed(id, overrides) : external(id, { ...overrides, confirmed_at: null }),
      );
      this.#transactions.push({ id, accountId });
    }
    if (chance.is(0.3) && this.#transactions.length > 10) lines.push(this.#withdrawal());
    await this.#certainly('import', () => this.#of.operator.import(lines));
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
      if (outcome.kind === 'done' || outcome.kind === 'refused' || tries > 30) return outcome;
      await this.#of.timeline.pause(this.#chance.between(300, 3_000));
    }
  }

  async #changeSomething(): Promise<void> {
    const { operator, timeline } = this.#of;
    const chance = this.#chance;
    const customer = chance.pick(this.#customers);
    const { accountId, prefix } = customer;
    const change = (what: string, ...commands: Parameters<typeof operator.change>[1]): Promise<unknown> =>
      this.#certainly(`${what} ${accountId} ${prefix}`, () => operator.change(accountId, commands));
    const nowMs = Math.floor(timeline.nowMs);
    switch (chance.int(13)) {
      case 0:
        return this.#switchOff(customer);
      case 1:
        this.#offSinceMs.delete(prefix);
        await change('key on', { type: 'SwitchKeyOn', accountId, prefix });
        return;
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
        if (chance.is(0.5))
          await this.#certainly(`redeliver ${prefix}`, () => operator.redeliverFailed(accountId, prefix));
        else await this.#certainly('rebuild', () => operator.rebuild());
        return;
      default:
        await this.#verify();
    }
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
    const { operator, receivers, hosts } = this.#of;
    const { accountId, prefix } = customer;
    const host = `r${++this.#hosts}.example.com`;
    const receiver = receivers.add(host);
    const former = customer.host === undefined ? undefined : receivers.byHost.get(customer.host);
    receiver.secret = former?.secret;
    hosts.set(host, prefix);
    const set = await this.#certainly(`webhook of ${prefix} to ${host}`, () =>
      operator.setWebhook(accountId, prefix, `https://${host}/hook`),
    );
    if (set.kind !== 'done') return;
    if (set.value !== null) receiver.secret = set.value;
    customer.host = host;
  }

  async #switchOff({ accountId, prefix }: Customer): Promise<void> {
    const { operator, timeline } = this.#of;
    const off = { type: 'SwitchKeyOff', accountId, prefix, reason: 'simulation' } as const;
    const outcome = await this.#certainly(`key off ${prefix}`, () => operator.change(accountId, [off], true));
    if (outcome.kind === 'done') this.#offSinceMs.set(prefix, timeline.nowMs);
  }

  /** The nightly verification: with nothing lost there is nothing to repair. */
  async #verify(): Promise<void> {
    const ids = [...new Set(this.#customers.map(({ accountId }) => accountId))];
    const { timeline, faultsAtMs } = this.#of;
    const startedMs = timeline.nowMs;
    const verified = await this.#certainly('verify', () => this.#of.operator.verify(ids));
    const isCalm = !faultsAtMs.some((ms) => ms > startedMs - 120_000);
    if (verified.kind !== 'done' || !isCalm) return;
    const { view, deliveries } = verified.value;
    if (view + deliveries > 0)
      this.#of.violation(
        `the verification repaired ${view} rows and ${deliveries} deliveries, though nothing was wrong`,
      );
  }

  /** All pages of a customer; compared with the model where nothing changes meanwhile. */
  async #page(customer: Customer, isQuiet: boolean): Promise<void> {
    const { model } = this.#of;
    const { prefix, accountId, key } = customer;
    const processes = this.#of.processes.filter(({ isListening }) => isListening);
    for (const process of isQuiet ? processes : processes.slice(0, 1)) {
      const offMs = this.#offSinceMs.get(prefix);
      const pages = await this.#pages(process, key);
      if (pages === undefined) continue;
      if (
        offMs !== undefined &&
        this.#offSinceMs.get(prefix) === offMs &&
        pages.some(({ status }) => status === 200)
      ) {
        this.#of.readLog();
        if (model.keyOf(prefix)?.key.isOn === false)
          this.#of.violation(`${process.name} answers the key ${prefix}, which is off everywhere`);
      }
      if (isQuiet) this.#compare(process, { prefix, accountId }, pages);
    }
    if (isQuiet && processes.length < this.#of.processes.length)
      this.#of.violation('a process does not listen though nothing goes wrong any more');
  }

  async #pages(process: SimulatedProcess, key: string) {
    const pages: { status: number; ids: { id: number; status: string }[]; code: string; text: string }[] = [];
    const limit = this.#chance.pick([5, 20, 100]);
    const nowMs = this.#of.timeline.nowMs;
    const range = `from=${new Date(nowMs - 30 * DAY_MS).toISOString()}&to=${new Date(nowMs + 60_000).toISOString()}`;
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`;
      const answer = await process.pull(
        `/api/v1/integration/transactions?${range}&limit=${limit}${query}`,
        key,
      );
      if (answer === undefined) return undefined;
      const body = answer.text === '' ? {} : JSON.parse(answer.text);
      pages.push({
        status: answer.status,
        ids: body.data ?? [],
        code: body.error?.code ?? body.code ?? '',
        text: answer.text,
      });
      const pagination = body.pagination;
      if (pagination !== undefined && pagination.has_more !== (pagination.next_cursor !== null))
        this.#of.violation('has_more and next_cursor disagree');
      if (pagination?.has_more === true && body.data.length !== limit)
        this.#of.violation('a page that is not the last is short');
      cursor = pagination?.next_cursor ?? null;
    } while (cursor !== null && pages.length < 1_000);
    return pages;
  }

  #compare(
    process: SimulatedProcess,
    { prefix, accountId }: { prefix: string; accountId: number },
    pages: readonly { status: number; ids: readonly { id: number; status: string }[]; text: string }[],
  ): void {
    const { model, timeline } = this.#of;
    this.#of.readLog();
    const found = model.keyOf(prefix);
    if (found === undefined) return void this.#of.violation(`the key ${prefix} is not in the log`);
    const mayRead = found.key.isOn && model.hasAccess(found.account, timeline.nowMs);
    const statuses = new Set(pages.map(({ status }) => status));
    if (mayRead !== (statuses.size === 1 && statuses.has(200)))
      return void this.#of.violation(
        `${process.name} answers ${[...statuses]} to ${prefix}, which ${mayRead ? 'may' : 'may not'} read: ${pages[0]?.text.slice(0, 200)}`,
      );
    if (!mayRead) return;
    const listed = pages.flatMap(({ ids }) => ids.map(({ id, status }) => `${id} ${status}`));
    const fromMs = timeline.nowMs - 30 * DAY_MS;
    const expected = model
      .visible(accountId)
      .filter(({ createdAtMs }) => createdAtMs >= fromMs)
      .map(({ id, status }) => `${id} ${status}`);
    if (listed.join() !== expected.join()) {
      const missing = expected.filter((each) => !listed.includes(each));
      const extra = listed.filter((each) => !expected.includes(each));
      this.#of.violation(
        `the pages of account ${accountId} at ${process.name} are not its events: missing ${missing}; not expected ${extra}; ${listed.length} of ${expected.length}`,
      );
    }
    for (const record of pages.flatMap(({ ids }) => ids)) {
      const transaction = model.transactions.get(record.id);
      const wrong = transaction && judgeRecord({ ...record }, transaction, found.key.showsNumbers);
      if (wrong !== undefined)
        this.#of.violation(`transaction ${record.id} is listed for ${prefix} and ${wrong}`);
    }
    for (const { text } of pages)
      if (!found.key.showsNumbers && text.includes('mobile_number'))
        this.#of.violation(`${prefix} sees a mobile number`);
  }
}
