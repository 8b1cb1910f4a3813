import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../base/clock.ts';
import type { BoundedReads } from '../../../push/queue/bounded-reads.ts';
import type {
  Backlog,
  ClaimedDelivery,
  ClaimOptions,
  Delivery,
  DeliveryFilter,
  DeliveryPage,
  DeliveryQueue,
  DeliveryReport,
  DeliveryState,
  DeliverySummary,
  LoggedDelivery,
  NewDelivery,
  WebhookHealth,
  WorkSignal,
} from '../../../push/queue/delivery-queue.ts';
import type { DeliveryLogCopy, StoredDelivery, StoredStreak } from '../../../push/queue/log-copy.ts';
import type { MongoConnection } from '../connection.ts';
import { PreparedCollections } from '../prepared-collections.ts';
import {
  BULK,
  endSome,
  eraseRecords,
  purgeSome,
  purgeWithdrawals,
  redeliver,
  resumeSome,
  withdraw,
} from './changes.ts';
import { claimDue } from './claim.ts';
import {
  DELIVERIES_PLAN,
  type DeliveryCollections,
  deliveryCollections,
  insertMissing,
} from './collections.ts';
import { firstDueAtMs, nextLaneDueAtMs } from './due.ts';
import { storeNew } from './enqueue.ts';
import { readHealth, resetHealth } from './lanes.ts';
import * as copy from './log-copy.ts';
import {
  backlog,
  countByState,
  deliveriesOfTransactions,
  findDelivery,
  heldAccounts,
  listDeliveries,
  mongoBoundedReads,
  transactionsAfter,
} from './reader.ts';
import { MongoReporter } from './report.ts';
import { PolledSignal } from './signal.ts';

const POLL_MS = 500;
/** A lease lasts 5 s: a later answer is of no use. */
const ANSWER_MS = 5_000;
/** A list or a copy may read much of the log. */
const LONG_QUERY_MS = 20_000;

type Work<T> = (collections: DeliveryCollections) => Promise<T>;

export interface MongoDeliveryQueueOptions {
  /** Shared; its owner closes it. */
  readonly connection: MongoConnection;
  /** The time of what the port's calls don't date, and of the polls for other processes' work. */
  readonly clock: Clock;
  /** How soon work of other processes is seen at the latest. */
  readonly pollMs?: number | undefined;
}

/** Opens the delivery log of a MongoDB; the first call creates missing collections. */
export function openMongoDeliveryQueue(options: MongoDeliveryQueueOptions): MongoDeliveryQueue {
  return new MongoDeliveryQueue(options);
}

/**
 * The delivery queue on MongoDB, for any number of processes. What is acknowledged is on a majority of the replica
 * set. Each delivery is one document that changes by guarded updates; only a change of a failure streak is a
 * transaction. So `enqueue` and `report` are all or nothing for each delivery, not for the batch: after an
 * interruption the same call, repeated, completes the rest, or the leases end. What can't be stored is refused
 * before anything is stored.
 *
 * Calls reject with `STORE_UNAVAILABLE` while no server takes them, after 5 s at the latest; they may have been
 * carried out all the same.
 */
export class MongoDeliveryQueue implements DeliveryQueue, DeliveryLogCopy {
  readonly bounded: BoundedReads = mongoBoundedReads((work) => this.#use(work));
  readonly #collections: PreparedCollections;
  readonly #clock: Clock;
  readonly #reporter: MongoReporter;
  readonly #signal: PolledSignal;

  constructor({ connection, clock, pollMs = POLL_MS }: MongoDeliveryQueueOptions) {
    this.#collections = new PreparedCollections(connection, DELIVERIES_PLAN);
    this.#clock = clock;
    this.#reporter = new MongoReporter(connection);
    const isDue = async (): Promise<boolean> => ((await this.nextDueAtMs()) ?? Infinity) <= clock.now();
    this.#signal = new PolledSignal({ isDue, pollMs });
  }

  get changed(): WorkSignal {
    return this.#signal;
  }

  logId(): Promise<copy.LogName> {
    const first = { id: randomUUID(), startedAtMs: this.#clock.now() };
    return this.#use((collections) => copy.nameOf(collections, first));
  }

  async enqueue(
    deliveries: readonly NewDelivery[],
    claimFor?: Omit<ClaimOptions, 'limit'>,
  ): Promise<readonly ClaimedDelivery[]> {
    const { claimed, unclaimed } = await this.#use((collections) =>
      storeNew(collections, deliveries, claimFor),
    );
    if (unclaimed > 0) this.#signal.notify();
    return claimed;
  }

  claim(options: ClaimOptions): Promise<readonly ClaimedDelivery[]> {
    return this.#use((collections) => claimDue(collections, options));
  }

  async report(reports: readonly DeliveryReport[]): Promise<ReadonlyMap<string, WebhookHealth>> {
    const changed = await this.#use((collections) =>
      this.#reporter.record(collections, reports, this.#clock.now()),
    );
    if (reports.some(({ kind }) => kind === 'retry' || kind === 'released')) this.#signal.notify();
    return changed;
  }

  async resume(accountId: number, nowMs: number): Promise<number> {
    let total = 0;
    for (let after = ''; ; ) {
      const at = { accountId, after, nowMs };
      const { found, resumed, ...next } = await this.#use((collections) => resumeSome(collections, at));
      if (resumed > 0) this.#signal.notify();
      total += resumed;
      if (found < BULK) return total;
      after = next.after;
    }
  }

  async endLane(prefix: string, reason: string, nowMs: number): Promise<number> {
    let total = 0;
    for (;;) {
      const end = { prefix, reason, nowMs };
      const { found, ended } = await this.#use((collections) => endSome(collections, end));
      total += ended;
      if (found < BULK) return total;
    }
  }

  withdraw(transactionId: number, nowMs: number): Promise<void> {
    return this.#use((collections) => withdraw(collections, transactionId, nowMs));
  }

  erase(transactionId: number, nowMs: number): Promise<void> {
    return this.#use(async (collections) => {
      await withdraw(collections, transactionId, nowMs);
      await eraseRecords(collections, transactionId);
    });
  }

  async redeliver(
    id: string,
    options: { readonly force: boolean; readonly dueAtMs: number },
  ): ReturnType<DeliveryQueue['redeliver']> {
    const answer = await this.#use((collections) => redeliver(collections, id, options));
    if (answer === 'due') this.#signal.notify();
    return answer;
  }

  /** Reads one index entry, or one for each lane where a backlog is left out. */
  nextDueAtMs(laterThanMs = -1): Promise<number | undefined> {
    return this.#use(async ({ deliveries }) => {
      const dueAtMs = await firstDueAtMs(deliveries, -1);
      if (dueAtMs === undefined || dueAtMs > laterThanMs) return dueAtMs;
      return nextLaneDueAtMs(deliveries, laterThanMs);
    });
  }

  health(prefix: string): Promise<WebhookHealth> {
    return this.#use(({ lanes }) => readHealth(lanes, prefix));
  }

  resetHealth(prefix: string): Promise<void> {
    return this.#use(({ lanes }) => resetHealth(lanes, prefix));
  }

  heldAccounts(): Promise<readonly number[]> {
    return this.#use(heldAccounts);
  }

  find(id: string): Promise<Delivery | undefined> {
    return this.#use((collections) => findDelivery(collections, id));
  }

  list(filter: DeliveryFilter, page: DeliveryPage): Promise<readonly DeliverySummary[]> {
    return this.#use((collections) => listDeliveries(collections, filter, page), LONG_QUERY_MS);
  }

  countByState(filter: DeliveryFilter): Promise<Readonly<Record<DeliveryState, number>>> {
    return this.#use((collections) => countByState(collections, filter), LONG_QUERY_MS);
  }

  backlog(limit: number): Promise<Backlog> {
    return this.#use((collections) => backlog(collections, limit), LONG_QUERY_MS);
  }

  ofTransactions(transactionIds: readonly number[]): Promise<readonly LoggedDelivery[]> {
    return this.#use((collections) => deliveriesOfTransactions(collections, transactionIds), LONG_QUERY_MS);
  }

  transactionsAfter(afterId: number, limit: number): Promise<readonly number[]> {
    return this.#use((collections) => transactionsAfter(collections, afterId, limit), LONG_QUERY_MS);
  }

  purge(endedBeforeMs: number, limit: number): Promise<number> {
    return this.#use((collections) => purgeSome(collections, { endedBeforeMs, limit }));
  }

  purgeWithdrawals(madeBeforeMs: number, limit: number): Promise<number> {
    const nowMs = this.#clock.now();
    return this.#use((collections) => purgeWithdrawals(collections, { madeBeforeMs, limit, nowMs }));
  }

  adopt(log: copy.LogName): Promise<void> {
    return this.#use((collections) => copy.adoptName(collections, log));
  }

  deliveries({
    after = '',
  }: {
    readonly after?: string | undefined;
  } = {}): AsyncIterable<readonly StoredDelivery[]> {
    return this.#batches(copy.nextDeliveries, after, ({ id }) => id);
  }

  withdrawals(): AsyncIterable<readonly number[]> {
    return this.#batches(copy.nextWithdrawals, -1, (id) => id);
  }

  streaks(): AsyncIterable<readonly StoredStreak[]> {
    return this.#batches(copy.nextStreaks, '', ({ prefix }) => prefix);
  }

  store(deliveries: readonly StoredDelivery[]): Promise<void> {
    return this.#use((collections) => copy.storeDeliveries(collections, deliveries), LONG_QUERY_MS);
  }

  async storeWithdrawals(transactionIds: readonly number[]): Promise<void> {
    const made_at = this.#clock.now();
    const marks = [...new Set(transactionIds)].map((id) => ({ _id: id, made_at }));
    await this.#use(({ withdrawals }) => insertMissing(withdrawals, marks), LONG_QUERY_MS);
  }

  storeStreaks(streaks: readonly StoredStreak[]): Promise<void> {
    return this.#use((collections) => copy.storeStreaks(collections, streaks), LONG_QUERY_MS);
  }

  /** Stops polling; the owner closes the connection. */
  async close(): Promise<void> {
    this.#collections.close();
    this.#signal.close();
  }

  #use<T>(work: Work<T>, withinMs = ANSWER_MS): Promise<T> {
    return this.#collections.use(withinMs, (db) => work(deliveryCollections(db)));
  }

  /** Everything of a collection after `after`, until a batch is empty. */
  async *#batches<T, K>(
    next: (collections: DeliveryCollections, after: K) => Promise<T[]>,
    after: K,
    keyOf: (item: T) => K,
  ): AsyncIterable<readonly T[]> {
    for (let from = after; ; ) {
      const batch = await this.#use((collections) => next(collections, from), LONG_QUERY_MS);
      const last = batch.at(-1);
      if (last === undefined) return;
      yield batch;
      from = keyOf(last);
    }
  }
}
