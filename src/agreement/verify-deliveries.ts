import { setTimeout as sleep } from 'node:timers/promises';
import { Directory } from '../../projections/directory.ts';
import type { Clock } from '../clock.ts';
import { AccountHistory } from '../deliveries/fan-out/account-history.ts';
import { FanOut } from '../deliveries/fan-out/fan-out.ts';
import type { DeliveryQueue, DeliveryState, NewDelivery } from '../deliveries/queue/delivery-queue.ts';
import type { Environment } from '../domain/account-events.ts';
import { TRANSACTION_STREAMS, transactionStream } from '../domain/transaction-events.ts';
import { parseDateTime } from '../domain/values/date-time.ts';
import { recordedAt } from '../event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../event-store/event-store.ts';
import { readToEnd } from '../event-store/read-to-end.ts';

const PAGE = 1_000;
/** What was recorded a moment ago may be on its way into the log: it gets this long before it counts as missing. */
const SETTLE_MS = 1_000;
const RECORDINGS = new Set(['TransactionConfirmed', 'ExternalTransactionRecorded']);

export interface VerifyDeliveriesOptions {
  readonly store: EventStore;
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  /** Transactions recorded before this are not judged, whatever the retention: the log knows nothing of them. */
  readonly logStartedAtMs: number;
  readonly accountId?: number | undefined;
  /** When the transaction was recorded, milliseconds; both inclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  readonly settleMs?: number;
  readonly onProgress?: (transactions: number) => void;
}

export interface DeliveryAgreement {
  readonly owed: number;
  /** Of those owed, how many stand in the log in each state. */
  readonly states: Readonly<Record<DeliveryState, number>>;
  /** Owed, and not in the log. */
  readonly missing: readonly NewDelivery[];
  /** In the log, and not owed. */
  readonly surplus: readonly {
    readonly id: string;
    readonly prefix: string;
    readonly transactionId: number;
  }[];
  /** Transactions that can't be judged: recorded too long ago, or of an account that can't be read. */
  readonly notJudged: number;
}

/**
 * Holds the delivery log against the events: what each transaction's event calls for, decided as the fan-out
 * decides it, against what the log has. Nothing is changed. The log is read first, so that whatever stands in it
 * has its event among those read afterwards.
 */
export function verifyDeliveries(options: VerifyDeliveriesOptions): Promise<DeliveryAgreement> {
  return new Verification(options).run();
}

interface LoggedDelivery {
  readonly id: string;
  readonly prefix: string;
  readonly transactionId: number;
  readonly state: DeliveryState;
}

class Verification {
  readonly #options: VerifyDeliveriesOptions;
  readonly #fanOut: FanOut;
  readonly #floorMs: number;
  /** What is in the log and has not been found owed yet, by id. */
  readonly #logged = new Map<string, LoggedDelivery>();
  readonly #states = { pending: 0, held: 0, delivered: 0, failed: 0, withdrawn: 0 };
  readonly #unjudged = new Set<number>();
  #decided: NewDelivery[] = [];
  #missing: NewDelivery[] = [];
  #owed = 0;
  #notJudged = 0;
  #seen = 0;

  constructor(options: VerifyDeliveriesOptions) {
    this.#options = options;
    const { store, clock, environment, retentionMs, logStartedAtMs } = options;
    this.#floorMs = Math.max(clock.now() - retentionMs, logStartedAtMs);
    this.#fanOut = new FanOut({
      store,
      queue: { withdraw: () => Promise.reject(new Error('only recordings are judged')) },
      history: new AccountHistory({ store, directory: new Directory() }),
      accept: async (deliveries) => {
        for (const delivery of deliveries) this.#decided.push(delivery);
      },
      clock,
      environment,
      retentionMs,
    });
  }

  async run(): Promise<DeliveryAgreement> {
    await this.#readLog();
    const { store } = this.#options;
    for await (const { events } of readToEnd(store, { prefixes: [TRANSACTION_STREAMS], after: 0 })) {
      await this.#judge(events);
    }
    await this.#lookAgain();
    const surplus = await this.#surplus();
    const states = this.#states;
    return { owed: this.#owed, states, missing: this.#missing, surplus, notJudged: this.#notJudged };
  }

  async #readLog(): Promise<void> {
    const { queue, accountId } = this.#options;
    let after: string | undefined;
    do {
      const page = await queue.list({ accountId }, { limit: PAGE, after });
      for (const { id, prefix, transactionId, state, recordedAtMs } of page) {
        const isJudged = recordedAtMs >= this.#floorMs && this.#isAskedFor(recordedAtMs);
        if (isJudged) this.#logged.set(id, { id, prefix, transactionId, state });
      }
      after = page.length < PAGE ? undefined : page.at(-1)?.id;
    } while (after !== undefined);
  }

  async #judge(events: readonly RecordedEvent[]): Promise<void> {
    const judged = events.filter((event) => this.#isJudged(event));
    const settlements = await this.#fanOut.handle(judged.map((event) => ({ event, retryCount: 0 })));
    for (const settlement of settlements) {
      if (settlement.kind !== 'retry') continue;
      this.#notJudged += 1;
      this.#unjudged.add(transactionIdOf(settlement.event.event));
    }
    for (const delivery of this.#decided.splice(0)) {
      this.#owed += 1;
      const logged = this.#logged.get(delivery.id);
      if (logged === undefined) this.#missing.push(delivery);
      else this.#states[logged.state] += 1;
      this.#logged.delete(delivery.id);
    }
    this.#seen += judged.length;
    this.#options.onProgress?.(this.#seen);
  }

  #isJudged(event: RecordedEvent): boolean {
    if (!RECORDINGS.has(event.type)) return false;
    const { accountId } = this.#options;
    const named = (event.data as { readonly account_id?: unknown } | null)?.account_id;
    if (accountId !== undefined && named !== accountId) return false;
    const recordedAtMs = parseDateTime(recordedAt(event)) ?? event.recordedAtMs;
    if (!this.#isAskedFor(recordedAtMs)) return false;
    if (recordedAtMs >= this.#floorMs) return true;
    this.#notJudged += 1;
    return false;
  }

  #isAskedFor(recordedAtMs: number): boolean {
    const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY } = this.#options;
    return recordedAtMs >= sinceMs && recordedAtMs <= untilMs;
  }

  async #lookAgain(): Promise<void> {
    if (this.#missing.length === 0) return;
    await sleep(this.#options.settleMs ?? SETTLE_MS);
    const missing: NewDelivery[] = [];
    for (const delivery of this.#missing) {
      const found = await this.#options.queue.find(delivery.id);
      if (found === undefined) missing.push(delivery);
      else this.#states[found.state] += 1;
    }
    this.#missing = missing;
  }

  /** What was delivered of a transaction before it was erased is no mistake. */
  async #surplus(): Promise<LoggedDelivery[]> {
    const surplus: LoggedDelivery[] = [];
    for (const delivery of this.#logged.values()) {
      const { transactionId } = delivery;
      if (this.#unjudged.has(transactionId)) continue;
      if (!(await this.#options.store.isErased(transactionStream(transactionId)))) surplus.push(delivery);
    }
    return surplus;
  }
}

function transactionIdOf(event: RecordedEvent): number {
  return Number(event.stream.slice(TRANSACTION_STREAMS.length));
}
