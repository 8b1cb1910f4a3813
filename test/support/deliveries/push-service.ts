import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { openEngines } from '../../../src/engines/engines.ts';
import type { DeliveryState } from '../../../src/push/queue/delivery.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { atEndOfFile } from '../end-of-file.ts';
import { type Env, folder } from '../service/commands.ts';
import { openForUse } from '../service/operator.ts';
import { ServiceProcess } from '../service/service-process.ts';
import { confirmed, type EventLine, linesOf } from '../transactions/e2e-samples.ts';
import { until } from '../waiting.ts';
import { countByState, listed } from './listed.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/** Short, and long enough together that a receiver on a busy machine answers one of the attempts in time. */
export const RETRY_DELAYS_MS = [200, 2_000] as const;

export interface Customer {
  readonly account: number;
  readonly key: string;
  readonly prefix: string;
  readonly secret: string;
  /** The path of the webhook at the receiver. */
  readonly path: string;
}

const opened: PushService[] = [];

atEndOfFile(async () => {
  for (const push of opened.splice(0)) await push.closeFiles();
});

/** A service with short waits that may push to a receiver on this machine, and that receiver. */
export class PushService {
  readonly service: ServiceProcess;
  readonly receiver: WebhookReceiver;
  /** The service's settings, for further processes. */
  readonly env: Env;
  #engines: Engines | undefined;
  #transactionId = 1_000;

  private constructor(service: ServiceProcess, receiver: WebhookReceiver, env: Env) {
    this.env = env;
    this.service = service;
    this.receiver = receiver;
  }

  /** Prepares a service without starting it. It has all roles unless `args` name some. */
  static async prepare(env: Env = {}, args: readonly string[] = []): Promise<PushService> {
    const receiver = await WebhookReceiver.open();
    const ca = join(folder(), 'receiver-ca.pem');
    writeFileSync(ca, receiver.ca);
    const settings = {
      FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
      FUEL_WEBHOOK_CA: ca,
      FUEL_WEBHOOK_RETRY_DELAYS: RETRY_DELAYS_MS.map((delay) => `${delay}ms`).join(','),
      ...env,
    };
    const push = new PushService(new ServiceProcess({ env: settings, args }), receiver, settings);
    opened.push(push);
    return push;
  }

  static async start(env: Env = {}): Promise<PushService> {
    const push = await PushService.prepare(env);
    await push.service.start();
    return push;
  }

  /** Makes an account with access and a key whose webhook has its own path. Resolves once every process knows it. */
  async customer(account: number): Promise<Customer> {
    const path = `/hook/${account}`;
    const wishes = { webhookUrl: this.receiver.url(path) };
    const issued = await this.service.operator.provision(account, openForUse(account), wishes);
    return { account, key: issued.key, prefix: issued.prefix, secret: issued.webhookSecret ?? '', path };
  }

  /** Makes confirmed transactions that are created now. */
  made(account: number, count: number, overrides: Readonly<Record<string, unknown>> = {}): EventLine[] {
    return Array.from({ length: count }, () => {
      this.#transactionId += 1;
      const now = new Date().toISOString();
      return confirmed(this.#transactionId, {
        account_id: account,
        created_at: now,
        confirmed_at: now,
        ...overrides,
      });
    });
  }

  /** Records the events. By default it resolves once the pull channel shows them. */
  async record(events: readonly EventLine[], { wait = true } = {}): Promise<void> {
    await this.service.operator.import(linesOf(events), { wait });
  }

  /** Records new transactions of the account. Returns their ids. */
  async push(
    account: number,
    count = 1,
    overrides: Readonly<Record<string, unknown>> = {},
  ): Promise<number[]> {
    const events = this.made(account, count, overrides);
    await this.record(events);
    return events.map(({ data }) => Number(data.transaction_id));
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test reads the output as an operator's script would
  async list(...args: readonly string[]): Promise<any[]> {
    return (await this.service.done(['delivery', 'list', '--json', ...args])).lines;
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  async show(id: string): Promise<any> {
    return (await this.service.done(['delivery', 'show', id, '--json'])).json;
  }

  /**
   * Waits until the account has this many deliveries, all in this state. It reads the log directly, which is quicker.
   */
  async settled(account: number, state: DeliveryState, count = 1): Promise<void> {
    const queue = (await this.#stores()).queue();
    await until(async () => {
      const all = await listed(queue, { accountId: account });
      return all.length === count && all.every((delivery) => delivery.state === state);
    });
  }

  /** Waits until the account has this many deliveries in this state, besides any others. */
  async reached(account: number, state: DeliveryState, count: number): Promise<void> {
    const queue = (await this.#stores()).queue();
    await until(async () => (await countByState(queue, { accountId: account }))[state] === count);
  }

  /** Closes the files, for a test that removes one. */
  async closeFiles(): Promise<void> {
    await this.#engines?.close();
    this.#engines = undefined;
  }

  async #stores(): Promise<Engines> {
    this.#engines ??= await openEngines(this.service.operator.config, systemClock);
    return this.#engines;
  }
}

/** Returns the text of one record in a page of the pull channel. */
export function recordText(page: string, id: number): string {
  const start = page.indexOf(`{"id":${id},`);
  if (start < 0) throw new Error(`no record ${id} in ${page}`);
  let depth = 0;
  for (let at = start; at < page.length; at += 1) {
    if (page[at] === '{') depth += 1;
    if (page[at] === '}') depth -= 1;
    if (depth === 0) return page.slice(start, at + 1);
  }
  throw new Error('the record has no end');
}
