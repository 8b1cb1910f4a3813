import { judgeRecord } from '../judge/records.ts';
import type { Simulation } from '../simulation.ts';
import type { SimulatedProcess } from './process.ts';

const DAY_MS = 86_400_000;
const CALM_MS = 60_000;
/** The time within which a recorded transaction is on every page. */
const PROMPT_MS = 10_000;
const MAX_PAGES = 1_000;
/** How far the clock of a process is off at most. */
const CLOCK_MS = 1_000;

export interface Customer {
  readonly accountId: number;
  readonly prefix: string;
  readonly key: string;
  host: string | undefined;
}

interface Listed {
  readonly id: number;
  readonly status: string;
}

interface Page {
  readonly status: number;
  readonly listed: readonly Listed[];
  readonly text: string;
}

/** Customers who page through their transactions and compare them with what happened. */
export class Customers {
  readonly all: Customer[] = [];
  /** Since when each key is off in every process, according to `--wait`. */
  readonly offSinceMs = new Map<string, number>();
  /** The transactions that are shown according to an import with `--wait`. */
  readonly shown = new Set<number>();
  readonly #of: Simulation;
  readonly #chance;

  constructor(simulation: Simulation) {
    this.#of = simulation;
    this.#chance = simulation.chance.fork('customers');
  }

  any(): Customer {
    return this.#chance.pick(this.all);
  }

  /** Pages through each process while things change. */
  async page(customer: Customer): Promise<void> {
    for (const process of this.#of.processes.filter(({ isListening }) => isListening))
      await this.#pageAt(process, customer);
  }

  async #pageAt(process: SimulatedProcess, customer: Customer): Promise<void> {
    const { timeline, model } = this.#of;
    const [startMs, before, isShown] = [timeline.nowMs, this.#visible(customer), new Set(this.shown)];
    const pages = await this.#pages(process, customer);
    if (pages === undefined || pages.some(({ status }) => status !== 200)) return;
    const listed = pages.flatMap((page) => page.listed.map(({ id }) => id));
    if (new Set(listed).size < listed.length)
      this.#of.violation(`the pages of account ${customer.accountId} show a transaction twice`);
    const isCalm = this.#of.isCalmFor(CALM_MS, startMs);
    const after = new Set(this.#visible(customer));
    const lost = before.filter(
      (id) =>
        after.has(id) &&
        !listed.includes(id) &&
        (isShown.has(id) ||
          (isCalm && startMs - (model.transactions.get(id)?.recordedAtMs ?? 0) > PROMPT_MS)),
    );
    if (lost.length > 0)
      this.#of.violation(`the pages of account ${customer.accountId} skip transaction ${lost}`);
  }

  /** Pages through each process while nothing changes, and compares everything with the model. */
  async compareAll(): Promise<void> {
    const processes = this.#of.processes.filter(({ isListening }) => isListening);
    if (processes.length < this.#of.processes.length)
      this.#of.violation('a process does not listen though nothing goes wrong any more');
    for (const process of processes) {
      const missing = await process.missing();
      if (missing !== undefined) this.#of.violation(`${process.name} is not ready: ${missing}`);
    }
    for (const customer of this.all)
      for (const process of processes) {
        const startMs = this.#of.timeline.nowMs;
        const pages = await this.#pages(process, customer);
        if (pages !== undefined) this.#compare(process, customer, { pages, startMs });
      }
  }

  #visible({ accountId }: Customer): number[] {
    const { model, timeline } = this.#of;
    this.#of.readLog();
    const fromMs = timeline.nowMs - 30 * DAY_MS + PROMPT_MS;
    return model.visible(accountId).flatMap(({ id, createdAtMs }) => (createdAtMs >= fromMs ? [id] : []));
  }

  /** Reads all pages; `undefined` if the process ended. */
  async #pages(process: SimulatedProcess, customer: Customer): Promise<Page[] | undefined> {
    const offMs = this.offSinceMs.get(customer.prefix);
    const pages: Page[] = [];
    const limit = this.#chance.pick([5, 20, 100]);
    const { nowMs } = this.#of.timeline;
    const range = `from=${new Date(nowMs - 30 * DAY_MS).toISOString()}&to=${new Date(nowMs + 60_000).toISOString()}`;
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`;
      const path = `/api/v1/integration/transactions?${range}&limit=${limit}${query}`;
      const answer = await process.pull(path, customer.key);
      if (answer === undefined) return undefined;
      if (![200, 401, 403, 503].includes(answer.status))
        return void this.#of.violation(
          `${process.name} answers ${answer.status}: ${answer.text.slice(0, 200)}`,
        );
      const { data = [], pagination } = answer.text === '' ? {} : JSON.parse(answer.text);
      pages.push({ status: answer.status, listed: data, text: answer.text });
      if (pagination !== undefined && pagination.has_more !== (pagination.next_cursor !== null))
        this.#of.violation('has_more and next_cursor disagree');
      if (pagination?.has_more === true && data.length !== limit)
        this.#of.violation('a page that is not the last is short');
      cursor = pagination?.next_cursor ?? null;
      if (this.#chance.is(0.3)) await this.#of.timeline.pause(this.#chance.between(10, 5_000));
    } while (cursor !== null && pages.length < MAX_PAGES);
    const isOffStill = offMs !== undefined && this.offSinceMs.get(customer.prefix) === offMs;
    if (isOffStill && pages.some(({ status }) => status === 200)) {
      this.#of.readLog();
      if (this.#of.model.keyOf(customer.prefix)?.key.isOn === false)
        this.#of.violation(`${process.name} answers the key ${customer.prefix}, which is off everywhere`);
    }
    return pages;
  }

  #compare(
    process: SimulatedProcess,
    { prefix, accountId }: Customer,
    { pages, startMs }: { readonly pages: readonly Page[]; readonly startMs: number },
  ): void {
    const { model, timeline } = this.#of;
    this.#of.readLog();
    const found = model.keyOf(prefix);
    if (found === undefined) return void this.#of.violation(`the key ${prefix} is not in the log`);
    const access = model.accessIn(found.account, startMs - CLOCK_MS, timeline.nowMs + CLOCK_MS);
    const mayRead = found.key.isOn && access;
    const statuses = new Set(pages.map(({ status }) => status));
    if (mayRead !== undefined && mayRead !== (statuses.size === 1 && statuses.has(200))) {
      const answer = `${[...statuses]} to ${prefix}, which ${mayRead ? 'may' : 'may not'} read`;
      return void this.#of.violation(`${process.name} answers ${answer}: ${pages[0]?.text.slice(0, 200)}`);
    }
    if (!mayRead) return;
    const listed = pages.flatMap((page) => page.listed);
    const fromMs = timeline.nowMs - 30 * DAY_MS + PROMPT_MS;
    const shown = listed.filter(({ id }) => (model.transactions.get(id)?.createdAtMs ?? fromMs) >= fromMs);
    const names = shown.map(({ id, status }) => `${id} ${status}`);
    const expected = model
      .visible(accountId)
      .filter(({ createdAtMs }) => createdAtMs >= fromMs)
      .map(({ id, status }) => `${id} ${status}`);
    if (names.join() !== expected.join()) {
      const missing = expected.filter((each) => !names.includes(each));
      const extra = names.filter((each) => !expected.includes(each));
      this.#of.violation(
        `the pages of account ${accountId} at ${process.name} are not its events: missing ${missing}; not expected ${extra}; ${names.length} of ${expected.length}`,
      );
    }
    for (const record of listed) {
      const transaction = model.transactions.get(record.id);
      const wrong = transaction && judgeRecord({ ...record }, transaction, found.key.showsNumbers);
      if (wrong !== undefined)
        this.#of.violation(`transaction ${record.id} is listed for ${prefix} and ${wrong}`);
    }
    if (!found.key.showsNumbers && pages.some(({ text }) => text.includes('mobile_number')))
      this.#of.violation(`${prefix} sees a mobile number`);
  }
}
