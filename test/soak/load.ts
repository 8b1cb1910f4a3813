import { setTimeout as sleep } from 'node:timers/promises';
import type { Member } from '../crash/member.ts';
import { answerWith, type HookAnswer, type WebhookReceiver } from '../support/deliveries/webhook-receiver.ts';
import { type Operator, openForUse } from '../support/service/operator.ts';
import { confirmed, type EventLine, linesOf, voided } from '../support/transactions/e2e-samples.ts';
import type { Probe } from './probe.ts';

const ACCOUNTS = 25;
const CUSTOMERS = 20;
/** Receivers that hang, fail, cut the connection, are slow, or answer with another status. */
const BAD: readonly HookAnswer[] = [
  () => undefined,
  answerWith(500, 'no'),
  (response) => void response.destroy(),
  (response) => void setTimeout(() => answerWith(200)(response), 2_000),
  answerWith(410),
];
const VOIDED = 0.02;
const POLL_MS = 3_000;
const ENABLE_MS = 60_000;

interface Key {
  readonly account: number;
  readonly key: string;
  readonly prefix: string;
  readonly path: string;
  readonly isBad: boolean;
}

/** The load of a soak: a steady writer, receivers, customers who page, and an operator. */
export class Load {
  readonly keys: Key[] = [];
  /** The transactions to be seen at the end, by account. */
  readonly recorded = new Map<number, Set<number>>();
  /** How often each transaction arrived, by path and transaction. */
  readonly received = new Map<string, Map<number, number>>();
  readonly faults: string[] = [];
  count = 0;
  /** How many were recorded later than planned. */
  behind = 0;
  readonly #operator: Operator;
  readonly #receiver: WebhookReceiver;
  readonly #member: Member;
  readonly #probe: Probe;

  constructor(parts: { operator: Operator; receiver: WebhookReceiver; member: Member; probe: Probe }) {
    this.#operator = parts.operator;
    this.#receiver = parts.receiver;
    this.#member = parts.member;
    this.#probe = parts.probe;
  }

  /** Makes 50 webhooks, of which five are bad. */
  async provision(): Promise<void> {
    for (let n = 0; n < 2 * ACCOUNTS; n++) {
      const account = 1 + (n % ACCOUNTS);
      const path = `/hook/${n}`;
      const bad = n < BAD.length ? BAD[n] : undefined;
      this.#receiver.answer(path, (response, hook) => {
        this.#receiver.hooks.length = 0; // the requests of an hour would not fit in memory
        const { id, created_at } = hook.body.data.transaction;
        if (bad !== undefined) return bad(response, hook);
        answerWith(200)(response);
        const times = this.received.get(path) ?? new Map<number, number>();
        this.received.set(path, times);
        times.set(id, (times.get(id) ?? 0) + 1);
        this.#probe.deliveries.push(hook.atMs - Date.parse(created_at));
        return undefined;
      });
      const commands = n < ACCOUNTS ? openForUse(account) : [];
      const webhookUrl = this.#receiver.url(path);
      const { key, prefix } = await this.#operator.provision(account, commands, { webhookUrl });
      this.keys.push({ account, key, prefix, path, isBad: bad !== undefined });
      this.recorded.set(account, new Set());
    }
  }

  /** Writes this many transactions a second. Some are voided a while later. */
  async write(perSecond: number, signal: AbortSignal): Promise<void> {
    const startMs = Date.now();
    for (let second = 0; !signal.aborted; second++) {
      const created_at = new Date().toISOString();
      const lines: EventLine[] = [];
      for (let n = 0; n < perSecond; n++) {
        const id = ++this.count;
        const account_id = 1 + (id % ACCOUNTS);
        lines.push(confirmed(id, { account_id, created_at, confirmed_at: created_at }));
        this.recorded.get(account_id)?.add(id);
        const old = id - 10 * perSecond;
        if (old > 0 && old % Math.round(1 / VOIDED) === 0) {
          const of = 1 + (old % ACCOUNTS);
          lines.push(voided(old, { account_id: of, voided_at: created_at }));
          this.recorded.get(of)?.delete(old);
        }
      }
      await this.#operator.import(linesOf(lines), { wait: false });
      const lateMs = Date.now() - (startMs + 1_000 * (second + 1));
      if (lateMs > 1_000) this.behind += perSecond;
      if (lateMs < 0) await sleep(-lateMs);
    }
  }

  /** Makes each customer ask for new transactions, like an ERP system. */
  async poll(signal: AbortSignal): Promise<void> {
    const customers = this.keys.slice(-CUSTOMERS).map(async ({ key }, index) => {
      await sleep((index * POLL_MS) / CUSTOMERS);
      while (!signal.aborted) {
        const from = new Date(Date.now() - 900_000).toISOString();
        const startMs = performance.now();
        const answer = await this.#member.ask(`/transactions?${rangeFrom(from)}&limit=100`, key);
        if (answer?.status === 200) this.#probe.pages.push(performance.now() - startMs);
        else if (answer !== undefined && answer.status !== 503)
          this.faults.push(`a page was answered with ${answer.status}: ${answer.text.slice(0, 200)}`);
        await sleep(POLL_MS);
      }
    });
    await Promise.all(customers);
  }

  /** Enables disabled webhooks again, as people do. */
  async enable(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(ENABLE_MS, undefined, { signal }).catch(() => undefined);
      for (const { account: accountId, prefix, isBad } of this.keys)
        if (isBad) await this.#operator.change(accountId, { type: 'EnableWebhook', accountId, prefix });
    }
  }

  /** Checks that the pages show exactly what was recorded, and that each good receiver got everything at least once. */
  async judge(sinceMs: number): Promise<{ readonly repeated: number }> {
    let repeated = 0;
    for (const { account, key, path, isBad } of this.keys) {
      const expected = this.recorded.get(account) ?? new Set();
      const listed = await this.#walk(key, new Date(sinceMs).toISOString());
      const missing = [...expected].filter((id) => !listed.has(id)).length;
      if (missing > 0 || listed.size !== expected.size)
        this.faults.push(
          `account ${account} lists ${listed.size} of ${expected.size}, ${missing} are missing`,
        );
      if (isBad) continue;
      const times = this.received.get(path) ?? new Map<number, number>();
      const unsent = [...expected].filter((id) => !times.has(id));
      if (unsent.length > 0) this.faults.push(`${path} did not get ${unsent.length}, first ${unsent[0]}`);
      for (const count of times.values()) repeated += count - 1;
    }
    return { repeated };
  }

  async #walk(key: string, from: string): Promise<Set<number>> {
    const listed = new Set<number>();
    const range = rangeFrom(from);
    let [cursor, count] = ['', 0];
    for (;;) {
      const answer = await this.#member.ask(`/transactions?${range}&limit=100${cursor}`, key);
      if (answer?.status !== 200)
        throw new Error(`a page was answered with ${answer?.status} ${answer?.text}`);
      const { data, pagination } = answer.body;
      for (const { id } of data) listed.add(id);
      count += data.length;
      if (!pagination.has_more) break;
      cursor = `&cursor=${encodeURIComponent(pagination.next_cursor)}`;
    }
    if (count !== listed.size) this.faults.push(`${count - listed.size} transactions are listed twice`);
    return listed;
  }
}

function rangeFrom(from: string): string {
  return `from=${from}&to=${new Date(Date.now() + 60_000).toISOString()}`;
}
