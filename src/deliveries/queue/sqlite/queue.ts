import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../../clock.ts';
import { CommitWatch } from '../../../sqlite/commit-watch.ts';
import { Database } from '../../../sqlite/database.ts';
import type {
  Attempt,
  ClaimedDelivery,
  ClaimOptions,
  Delivery,
  DeliveryFilter,
  DeliveryQueue,
  DeliveryReport,
  DeliveryState,
  DeliverySummary,
  NewDelivery,
  WebhookHealth,
  WorkSignal,
} from '../delivery-queue.ts';
import { HealthRuns } from '../health-run.ts';
import { newLease } from '../lease.ts';
import type { DeliveryLogCopy } from '../log-copy.ts';
import { attemptWithoutWords, WITHDRAWN } from '../withdrawal.ts';
import { storeNew } from './enqueue.ts';
import { SqliteLanes } from './lanes.ts';
import { SqliteLogCopy } from './log-copy.ts';
import { SqliteDeliveryReader } from './reader.ts';
import { attemptUnderWay, nextState } from './report.ts';
import { attemptValues, type Row, type StandingRow, toClaimed } from './rows.ts';
import { deliveryMigrations } from './schema.ts';
import { prepareStatements, type Statements } from './statements.ts';

/** Deliveries that one commit of a bulk change touches: some milliseconds of the event loop. */
const BULK_ROWS = 500;

export interface SqliteDeliveryQueueOptions {
  readonly path: string;
  /** Dates what the port's calls don't: the log's start, a release, an end without an attempt. */
  readonly clock: Clock;
}

/** Opens the embedded delivery log, making the file where there is none. Several processes may share it. */
export function openSqliteDeliveryQueue(options: SqliteDeliveryQueueOptions): SqliteDeliveryQueue {
  return new SqliteDeliveryQueue(options);
}

/** The delivery queue on one SQLite file. A commit survives a power cut. Runs on the calling thread. */
export class SqliteDeliveryQueue implements DeliveryQueue {
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
  }

  get changed(): WorkSignal {
    return this.#commits;
  }

  async logId(): Promise<{ readonly id: string; readonly startedAtMs: number }> {
    this.#db.assertOpen();
    const row = this.#statements.log.get() as Row;
    return { id: row.id as string, startedAtMs: row.started_at as number };
  }

  /** The same log as `fuel store copy` reads and writes it; it ends with the queue. */
  copy(): DeliveryLogCopy {
    return new SqliteLogCopy(this.#db);
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
    if (!this.#hasWork(options)) return []; // nothing is locked to find that out
    return this.#db.write(() => {
      const lease = newLease(options.holder);
      const claimed: ClaimedDelivery[] = [];
      const lanes = new Set<string>();
      for (const prefix of this.#lanes.due(options.nowMs)) {
        const room = Math.min(options.laneCapacity(prefix), options.limit - claimed.length);
        if (room <= 0) continue;
        lanes.add(prefix);
        for (const row of this.#statements.due.all(prefix, options.nowMs, room)) {
          this.#statements.lease.run(lease, options.nowMs + options.leaseMs, row.seq as number);
          claimed.push(toClaimed(row, lease));
        }
        if (claimed.length === options.limit) break;
      }
      this.#lanes.refresh(lanes);
      return claimed;
    });
  }

  async report(reports: readonly DeliveryReport[]): Promise<ReadonlyMap<string, WebhookHealth>> {
    let due = false;
    const runs = new HealthRuns((prefix) => this.#lanes.health(prefix));
    await this.#db.write(() => {
      const nowMs = this.#clock.now();
      const lanes = new Set<string>();
      for (const report of reports) {
        const row = this.#standing(report.id);
        if (row === undefined) continue;
        const { seq, prefix } = row;
        const after = nextState(row, report, nowMs);
        if (after === undefined) {
          this.#keepAttempt(row, attemptUnderWay(row, report));
          continue;
        }
        this.#statements.settle.run({ seq, ...after });
        lanes.add(prefix);
        if (after.dueAtMs !== null) due = true;
        const attempt = 'attempt' in report ? report.attempt : null;
        if (attempt === null) continue;
        this.#insertAttempt(row, attempt);
        if (report.kind === 'delivered') runs.delivered(prefix);
        if (report.kind === 'failed') runs.failed(prefix, attempt);
      }
      this.#lanes.refresh(lanes);
      for (const [prefix, health] of runs.changed) this.#lanes.setHealth(prefix, health);
    });
    if (due) this.#commits.notify();
    return runs.changed;
  }

  async resume(accountId: number, nowMs: number): Promise<number> {
    let resumed = 0;
    let after = 0; // what is held again meanwhile is not resumed twice
    for (;;) {
      const rows = await this.#db.write(() => {
        const batch = this.#statements.resume.all(nowMs, accountId, after, BULK_ROWS);
        const lanes = new Set(batch.map((row) => row.prefix as string));
        for (const prefix of lanes) this.#lanes.endRunInTime(prefix);
        this.#lanes.refresh(lanes);
        return batch;
      });
      if (rows.length > 0) this.#commits.notify();
      resumed += rows.length;
      if (rows.length < BULK_ROWS) return resumed;
      after = rows.reduce((last, row) => Math.max(last, row.seq as number), after);
      await nextTurn();
    }
  }

  async endLane(prefix: string, reason: string, nowMs: number): Promise<number> {
    let ended = 0;
    for (;;) {
      const count = await this.#db.write(() => {
        const { changes } = this.#statements.endLane.run(reason, nowMs, prefix, BULK_ROWS);
        this.#lanes.refresh([prefix]);
        return changes as number;
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
      const row = this.#standing(id);
      if (row === undefined) return 'not known';
      if (this.#statements.isWithdrawn.get(row.transactionId) !== undefined) return 'withdrawn';
      if (row.state === 'pending' || row.state === 'held') return 'pending';
      if (row.state === 'delivered' && !force) return 'delivered';
      const { seq, prefix } = row;
      const anew = { cycle: row.cycle + 1, attemptsInCycle: 0, reason: null, endedAtMs: null, lease: null };
      this.#statements.settle.run({ seq, state: 'pending', dueAtMs, ...anew });
      this.#lanes.refresh([prefix]);
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

  async list(
    filter: DeliveryFilter,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<readonly DeliverySummary[]> {
    return this.#reader.list(filter, page);
  }

  async countByState(filter: DeliveryFilter): Promise<Readonly<Record<DeliveryState, number>>> {
    return this.#reader.countByState(filter);
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

  async close(): Promise<void> {
    this.#db.close();
    this.#commits.close();
  }

  #hasWork({ nowMs, limit, laneCapacity }: ClaimOptions): boolean {
    if (limit <= 0) return false;
    for (const prefix of this.#lanes.due(nowMs)) if (laneCapacity(prefix) > 0) return true;
    return false;
  }

  #withdraw(transactionId: number, nowMs: number): void {
    this.#statements.insertWithdrawal.run(transactionId);
    const rows = this.#statements.withdraw.all(WITHDRAWN, nowMs, transactionId);
    this.#lanes.refresh(rows.map((row) => row.prefix as string));
  }

  #keepAttempt(row: StandingRow, attempt: Attempt | undefined): void {
    if (attempt === undefined) return;
    this.#statements.countAttempt.run(row.seq);
    this.#insertAttempt(row, attempt);
  }

  #insertAttempt({ seq, isErased }: StandingRow, attempt: Attempt): void {
    const kept = isErased === 1 ? attemptWithoutWords(attempt) : attempt;
    this.#statements.insertAttempt.run(seq, ...attemptValues(kept));
    this.#statements.dropOldAttempts.run(seq);
  }

  #standing(id: string): StandingRow | undefined {
    return this.#statements.standing.get(id) as StandingRow | undefined;
  }
}
