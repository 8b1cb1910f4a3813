import { setTimeout as sleep } from 'node:timers/promises';
import { Directory } from '../../projections/directory.ts';
import type { Clock } from '../clock.ts';
import { AccountHistory } from '../deliveries/fan-out/account-history.ts';
import { FanOut } from '../deliveries/fan-out/fan-out.ts';
import type {
  Delivery,
  DeliveryQueue,
  DeliveryState,
  NewDelivery,
} from '../deliveries/queue/delivery-queue.ts';
import type { Environment } from '../domain/account-events.ts';
import {
  isRecordingType,
  TRANSACTION_STREAMS,
  transactionIdOf,
  transactionStream,
} from '../domain/transaction-events.ts';
import type { EventStore, RecordedEvent } from '../event-store/event-store.ts';
import { readToEnd } from '../event-store/read-to-end.ts';
import { isInRange, isInScope, recordedAtMs, SETTLE_MS, type VerifyScope } from './scope.ts';

const PAGE = 1_000;

export interface VerifyDeliveriesOptions extends VerifyScope {
  readonly store: EventStore;
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  /** Transactions recorded before this are not judged, whatever the retention: the log knows nothing of them. */
  readonly logStartedAtMs: number;
  readonly settleMs?: number;
  readonly onProgress?: (transactions: number) => void;
}

export interface DeliveryAgreement {
  readonly owed: number;
  /** How many of those owed are in each state in the log. */
  readonly states: Readonly<Record<DeliveryState, number>>;
  /** Owed, but not in the log. */
  readonly missing: readonly NewDelivery[];
  /** In the log, but not owed. */
  readonly surplus: readonly LoggedDelivery[];
  /** Transactions that can't be judged: recorded too long ago, or of an account that can't be read. */
  readonly notJudged: number;
}

type LoggedDelivery = Pick<Delivery, 'id' | 'prefix' | 'transactionId' | 'state'>;

/**
 * Compares the delivery log with what the events call for, as the fan-out decides it. Changes nothing. The log is read
 * first: whatever is in it has its event among those that are read afterwards.
 */
export function verifyDeliveries(options: VerifyDeliveriesOptions): Promise<DeliveryAgreement> {
  return new Verification(options).run();
}

class Verification {
  readonly #options: VerifyDeliveriesOptions;
  readonly #fanOut: FanOut;
  readonly #floorMs: number;
  /** What is in the log and was not found owed yet, by id. */
  readonly #logged = new Map<string, LoggedDelivery>();
  readonly #states = { pending: 0, held: 0, delivered: 0, failed: 0, withdrawn: 0 };
  readonly #unjudged = new Set<number | undefined>();
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
    await this.#checkMissingAgain();
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
        const isJudged = recordedAtMs >= this.#floorMs && isInRange(recordedAtMs, this.#options);
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
      this.#unjudged.add(transactionIdOf(settlement.event.event.stream));
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
    if (!isRecordingType(event.type) || !isInScope(event, this.#options)) return false;
    if (recordedAtMs(event) >= this.#floorMs) return true;
    this.#notJudged += 1;
    return false;
  }

  async #checkMissingAgain(): Promise<void> {
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

  /** Deliveries of a transaction that was erased since are right. */
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
