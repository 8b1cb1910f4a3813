import { setTimeout as sleep } from 'node:timers/promises';
import { FuelError } from '../../src/base/errors.ts';
import type { Customer, PushService } from '../support/deliveries/push-service.ts';
import type { ServiceProcess } from '../support/service/service-process.ts';
import { type EventLine, idsOf, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const RECORDED_AT_ONCE = 4;
const RECORD_PAUSE_MS = 150;
const PULL_PAUSE_MS = 30;

/** One answer of the API, as the client that asks all the time saw it. */
export interface Pulled {
  readonly atMs: number;
  readonly tookMs: number;
  readonly status: number;
  readonly code: string | undefined;
}

/**
 * What goes on while engines are hurt: transactions are recorded that are owed to webhooks, and each API is asked
 * for page after page of an account that is being imported.
 */
export class Traffic {
  readonly #push: PushService;
  readonly #customers: readonly Customer[];
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[];
  /** Ids of what was recorded, by account. */
  readonly recorded = new Map<number, Set<number>>();
  readonly pulled: Pulled[] = [];

  constructor(options: {
    readonly push: PushService;
    readonly customers: readonly Customer[];
    readonly apis: readonly ServiceProcess[];
    /** Of the account whose pages are asked for. */
    readonly key: string;
  }) {
    this.#push = options.push;
    this.#customers = options.customers;
    this.#loops = [this.#record(), ...options.apis.map((api) => this.#pull(api, options.key))];
    for (const loop of this.#loops) loop.catch(() => undefined); // `stop` tells
  }

  /** Resolves when everything that was begun is recorded. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
  }

  /** Records a transaction for each customer; resolves once they are delivered. */
  async delivered(withinMs: number): Promise<void> {
    const events = this.#customers.flatMap(({ account }) => this.#push.made(account, 1));
    await this.#recordAll(events);
    const { receiver } = this.#push;
    await until(async () => {
      const there = new Set(receiver.hooks.map(({ body }) => body.data.transaction.id));
      return events.every(({ data }) => there.has(data.transaction_id));
    }, withinMs);
  }

  async #record(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const events = this.#customers.flatMap(({ account }) => this.#push.made(account, RECORDED_AT_ONCE));
      await this.#recordAll(events);
      await sleep(RECORD_PAUSE_MS);
    }
  }

  /** As an operator's script does: the same events again until they are in. */
  async #recordAll(events: readonly EventLine[]): Promise<void> {
    for (;;) {
      try {
        await this.#push.record(events, { wait: false });
        break;
      } catch (error) {
        if (!(error instanceof FuelError) || error.code !== 'STORE_UNAVAILABLE') throw error;
      }
    }
    for (const { data } of events) {
      const ids = this.recorded.get(Number(data.account_id)) ?? new Set();
      this.recorded.set(Number(data.account_id), ids.add(Number(data.transaction_id)));
    }
  }

  /** Walks the pages from the newest to the oldest, again and again; a page that is refused is asked for again. */
  async #pull(api: ServiceProcess, key: string): Promise<void> {
    let cursor = '';
    let seen = new Set<number>();
    while (!this.#stopping.signal.aborted) {
      const atMs = Date.now();
      const { status, body } = await api.get(`/transactions?${SEPTEMBER}&limit=100${cursor}`, { key });
      this.pulled.push({ atMs, tookMs: Date.now() - atMs, status, code: body.error?.code });
      if (status === 200) {
        const ids = idsOf(body);
        for (const id of ids)
          if (seen.has(id)) throw new Error(`transaction ${id} is on two pages of a walk`);
        for (const id of ids) seen.add(id);
        const next: string | null = body.pagination.next_cursor;
        cursor = next === null ? '' : `&cursor=${encodeURIComponent(next)}`;
        if (next === null) seen = new Set();
      }
      await sleep(PULL_PAUSE_MS);
    }
  }
}
