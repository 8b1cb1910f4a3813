import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../../base/clock.ts';
import type { BoundedReads } from '../../../push/queue/bounded-reads.ts';
import {
  type Backlog,
  type ClaimedDelivery,
  type ClaimOptions,
  type Delivery,
  type DeliveryFilter,
  type DeliveryPage,
  type DeliveryQueue,
  type DeliveryReport,
  type DeliveryState,
  type DeliverySummary,
  type LoggedDelivery,
  type NewDelivery,
  newLeaseToken,
  type WebhookHealth,
  type WorkSignal,
} from '../../../push/queue/delivery-queue.ts';
import { FailureStreaks } from '../../../push/queue/failure-streak.ts';
import type { DeliveryLogCopy } from '../../../push/queue/log-copy.ts';
import {
  type DeliveryChange,
  keptAttempt,
  type NextState,
  nextState,
  redeliveryRefusal,
} from '../../../push/queue/next-state.ts';
import { CommitWatch } from '../commit-watch.ts';
import { Database } from '../database.ts';
import { SqliteBoundedReads } from './bounded-reads.ts';
import { storeNew } from './enqueue.ts';
import { SqliteLanes } from './lanes.ts';
import { SqliteLogCopy } from './log-copy.ts';
import { SqliteDeliveryReader } from './reader.ts';
import { attemptValues, type ProgressRow, toClaimed } from './rows.ts';
import { deliveryMigrations } from './schema.ts';
import { prepareStatements, type Statements } from './statements.ts';

/** Deliveries that one commit of a bulk change touches: some milliseconds of the event loop. */
const BULK_ROWS = 250;

export interface SqliteDeliveryQueueOptions {
  readonly path: string;
  /** The time of what the port's calls don't date: the log's start, a release, an end without an attempt. */
  readonly clock: Clock;
}

/** Opens the embedded delivery log and creates a missing file. Several processes may share it. */
export function openSqliteDeliveryQueue(options: SqliteDeliveryQueueOptions): SqliteDeliveryQueue {
  return new SqliteDeliveryQueue(options);
}

/** The delivery queue on one SQLite file. A commit survives a power cut. Runs on the calling thread. */
export class SqliteDeliveryQueue implements DeliveryQueue {
  readonly changed: WorkSignal;
  readonly bounded: BoundedReads;
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #commits: CommitWatch;
  readonly #lanes: SqliteLanes;
  readonly #reader: SqliteDeliveryReader;
  readonly #statements: Statements;

  constructor({ path, clock }: SqliteDeliveryQueueOptions) {
    const migrations = deliveryMigrations({ id: randomUUID(), startedAtMs: clock.now() });
    this.#db = new Database(path, { migrations, durability: 'full' });
    this.#clock = clock;
    this.#commits = new CommitWatch(this.#db);
    this.#lanes = new SqliteLanes(this.#db);
    this.#reader = new SqliteDeliveryReader(this.#db);
    this.#statements = prepareStatements(this.#db);
    this.changed = this.#commits;
    this.bounded = new SqliteBoundedReads(this.#db, this.#reader);
  }

  async logId(): Promise<{ readonly id: string; readonly startedAtMs: number }> {
    return this.copy().logId();
  }

  /** The same log as `fuel store copy` reads and writes it; closed with the queue. */
  copy(): DeliveryLogCopy {
    return new SqliteLogCopy(this.#db, this.#clock);
  }

  async enqueue(
    deliveries: readonly NewDelivery[],
    claimFor?: Omit<ClaimOptions, 'limit'>,
  ): Promise<readonly ClaimedDelivery[]> {
    this.#db.assertOpen();
    if (deliveries.length === 0) return [];
    const { claimed, unclaimed } = await this.#db.write(() => {
      const stored = storeNew(this.#statements, deliveries, claimFor);
      this.#lanes.refresh(stored.lanes);
      return stored;
    });
    if (unclaimed > 0) this.#commits.notify();
    return claimed;
  }

  async claim(options: ClaimOptions): Promise<readonly ClaimedDelivery[]> {
    this.#db.assertOpen();
    if (!this.#lanes.hasWork(options)) return []; // found out without a lock
    return this.#db.write(() => {
      const leaseToken = newLeaseToken(options.holder);
      const claimed: ClaimedDelivery[] = [];
      const lanes = new Set<string>();
      for (const prefix of this.#lanes.due(options.nowMs)) {
        const most = Math.min(options.laneCapacity(prefix), options.limit - claimed.length);
        if (most <= 0) continue;
        lanes.add(prefix);
        for (const row of this.#statements.due.all(prefix, options.nowMs, most)) {
          this.#statements.lease.run(leaseToken, options.nowMs + options.leaseMs, row.seq as number);
          claimed.push(toClaimed(row, leaseToken));
        }
        if (claimed.length === options.limit) break;
      }
      this.#lanes.refresh(lanes);
      return claimed;
    });
  }

  async report(reports: readonly DeliveryReport[]): Promise<ReadonlyMap<string, WebhookHealth>> {
    let due = false;
    const streaks = new FailureStreaks((prefix) => this.#lanes.health(prefix));
    await this.#db.write(() => {
      const nowMs = this.#clock.now();
      const lanes = new Set<string>();
      for (const report of reports) {
        const row = this.#progress(report.id);
        const next = row && this.#change(row, report, nowMs);
        if (row === undefined || next === undefined) continue;
        lanes.add(row.prefix);
        streaks.apply(row.prefix, next);
        if (next.progress.dueAtMs !== null) due = true;
      }
      this.#lanes.refresh(lanes);
      for (const [prefix, health] of streaks.changed) this.#lanes.setHealth(prefix, health);
    });
    if (due) this.#commits.notify();
    return streaks.changed;
  }

  async resume(accountId: number, nowMs: number): Promise<number> {
    let resumed = 0;
    let after = 0; // what is held again meanwhile is not resumed twice
    for (;;) {
      const rows = await this.#db.write(() => {
        const found = this.#statements.heldOfAccount.all(accountId, after, BULK_ROWS);
        const held = found as unknown as ProgressRow[];
        for (const row of held) this.#change(row, { kind: 'resume' }, nowMs);
        const lanes = new Set(held.map(({ prefix }) => prefix));
        for (const prefix of lanes) this.#lanes.endStreakInTime(prefix);
        this.#lanes.refresh(lanes);
        return held;
      });
      if (rows.length > 0) this.#commits.notify();
      resumed += rows.length;
      if (rows.length < BULK_ROWS) return resumed;
      after = rows.at(-1)?.seq ?? after;
      await nextTurn();
    }
  }

  async endLane(prefix: string, reason: string, nowMs: number): Promise<number> {
    let ended = 0;
    for (;;) {
      const count = await this.#db.write(() => {
        const open = this.#statements.openOfLane.all(prefix, BULK_ROWS) as unknown as ProgressRow[];
        for (const row of open) this.#change(row, { kind: 'end lane', reason }, nowMs);
        this.#lanes.refresh([prefix]);
        return open.length;
      });
      ended += count;
      if (count < BULK_ROWS) return ended;
      await nextTurn();
    }
  }

  async withdraw(transactionId: number, nowMs: number): Promise<void> {
    await this.#db.write(() => this.#withdraw(transactionId, nowMs));
  }

  async erase(transactionId: number, nowMs: number): Promise<void> {
    await this.#db.write(() => {
      this.#withdraw(transactionId, nowMs);
      this.#statements.eraseRecords.run(transactionId);
      this.#statements.eraseAnswers.run(transactionId);
    });
  }

  async redeliver(
    id: string,
    { force, dueAtMs }: { readonly force: boolean; readonly dueAtMs: number },
  ): Promise<'due' | 'not known' | 'withdrawn' | 'delivered' | 'pending'> {
    const answer = await this.#db.write(() => {
      const row = this.#progress(id);
      if (row === undefined) return 'not known';
      if (this.#statements.isWithdrawn.get(row.transactionId) !== undefined) return 'withdrawn';
      const { state, cycle } = row;
      const refusal = redeliveryRefusal(state, force);
      if (refusal !== undefined) return refusal;
      this.#change(row, { kind: 'redeliver', force, cycle, dueAtMs }, this.#clock.now());
      this.#lanes.refresh([row.prefix]);
      return 'due';
    });
    if (answer === 'due') this.#commits.notify();
    return answer;
  }

  async nextDueAtMs(laterThanMs = -1): Promise<number | undefined> {
    this.#db.assertOpen();
    return this.#lanes.nextDueAtMs(laterThanMs);
  }

  async health(prefix: string): Promise<WebhookHealth> {
    this.#db.assertOpen();
    return this.#lanes.health(prefix);
  }

  async resetHealth(prefix: string): Promise<void> {
    await this.#db.write(() => this.#lanes.resetHealth(prefix));
  }

  async heldAccounts(): Promise<readonly number[]> {
    return this.#reader.heldAccounts();
  }

  async find(id: string): Promise<Delivery | undefined> {
    return this.#reader.find(id);
  }

  async list(filter: DeliveryFilter, page: DeliveryPage): Promise<readonly DeliverySummary[]> {
    return this.#reader.list(filter, page);
  }

  async countByState(filter: DeliveryFilter): Promise<Readonly<Record<DeliveryState, number>>> {
    return this.#reader.countByState(filter);
  }

  async backlog(limit: number): Promise<Backlog> {
    return this.#reader.backlog(limit);
  }

  async ofTransactions(transactionIds: readonly number[]): Promise<readonly LoggedDelivery[]> {
    return this.#reader.ofTransactions(transactionIds);
  }

  async transactionsAfter(afterId: number, limit: number): Promise<readonly number[]> {
    return this.#reader.transactionsAfter(afterId, limit);
  }

  async purge(endedBeforeMs: number, limit: number): Promise<number> {
    return this.#db.write(() => {
      const rows = this.#statements.purge.all(endedBeforeMs, limit);
      for (const { seq } of rows as unknown as { seq: number }[]) {
        this.#statements.purgeRecord.run(seq);
        this.#statements.purgeAttempts.run(seq);
      }
      return rows.length;
    });
  }

  async purgeWithdrawals(madeBeforeMs: number, limit: number): Promise<number> {
    return this.#db.write(() => this.#statements.purgeWithdrawals.run(madeBeforeMs, limit).changes as number);
  }

  async close(): Promise<void> {
    this.#db.close();
    this.#commits.close();
  }

  #withdraw(transactionId: number, nowMs: number): void {
    this.#statements.insertWithdrawal.run(transactionId, nowMs);
    const open = this.#statements.openOfTransaction.all(transactionId) as unknown as ProgressRow[];
    for (const row of open) this.#change(row, { kind: 'withdraw' }, nowMs);
    this.#lanes.refresh(open.map(({ prefix }) => prefix));
  }

  #progress(id: string): ProgressRow | undefined {
    return this.#statements.progress.get(id) as ProgressRow | undefined;
  }

  /** Carries out a change by the table; `undefined` where it changes nothing. The lane is refreshed by the caller. */
  #change(row: ProgressRow, change: DeliveryChange, nowMs: number): NextState | undefined {
    const next = nextState(row, change, nowMs);
    if (next === undefined) return undefined;
    const { state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs, leaseToken } = next.progress;
    const values = [state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs, leaseToken];
    this.#statements.update.run(...values, row.seq);
    if (next.attempt !== undefined) {
      const kept = keptAttempt(next.attempt, row.isErased === 1);
      this.#statements.insertAttempt.run(row.seq, ...attemptValues(kept));
      this.#statements.dropOldAttempts.run(row.seq);
    }
    return next;
  }
}
