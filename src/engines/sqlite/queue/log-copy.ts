import type { StatementSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../../base/clock.ts';
import { FuelError } from '../../../base/errors.ts';
import { batchesOf, jsonBytes } from '../../../event-store/batch-bytes.ts';
import { MAX_ATTEMPTS_KEPT } from '../../../push/queue/delivery-queue.ts';
import type { DeliveryLogCopy, StoredDelivery, StoredStreak } from '../../../push/queue/log-copy.ts';
import type { Database } from '../database.ts';
import { SqliteLanes } from './lanes.ts';
import { attemptValues, RECORD_COLUMNS, type Row, SUMMARY_COLUMNS, toAttempt, toDelivery } from './rows.ts';
import { KEPT_ATTEMPTS, prepareStatements, type Statements } from './statements.ts';

/** Deliveries of one read or one commit: some milliseconds of the event loop. */
const BATCH = 500;
const FIRST = ''; // before every id

/** The embedded delivery log as a copy reads and writes it. Each batch is one snapshot, or one commit. */
export class SqliteLogCopy implements DeliveryLogCopy {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #lanes: SqliteLanes;
  readonly #common: Statements;
  readonly #own: ReturnType<typeof prepareOwn>;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#lanes = new SqliteLanes(db);
    this.#common = prepareStatements(db);
    this.#own = prepareOwn(db);
  }

  async logId(): Promise<{ readonly id: string; readonly startedAtMs: number }> {
    this.#db.assertOpen();
    const row = this.#common.log.get() as Row;
    return { id: row.id as string, startedAtMs: row.started_at as number };
  }

  async adopt({ id, startedAtMs }: { readonly id: string; readonly startedAtMs: number }): Promise<void> {
    await this.#db.write(() => {
      const own = (this.#common.log.get() as Row).id as string;
      if (own === id) return;
      if (this.#own.any.get() !== undefined) {
        throw new FuelError(
          'REFUSED',
          `the delivery log ${own} holds deliveries: it can't become the log ${id}, use an empty one`,
        );
      }
      this.#own.rename.run(id, startedAtMs);
    });
  }

  async *deliveries(options?: {
    readonly after?: string | undefined;
  }): AsyncGenerator<readonly StoredDelivery[]> {
    let after = options?.after ?? FIRST;
    for (;;) {
      const batch = this.#db.read(() => this.#next(after));
      const last = batch.at(-1);
      if (last === undefined) return;
      yield batch;
      after = last.id;
      await nextTurn();
    }
  }

  #next(after: string): readonly StoredDelivery[] {
    const whole = this.#own.deliveries.iterate(after, BATCH).map((row) => this.#whole(row));
    for (const batch of batchesOf(whole, { most: BATCH, bytesOf: jsonBytes })) return batch;
    return [];
  }

  async *withdrawals(): AsyncGenerator<readonly number[]> {
    let after = Number.MIN_SAFE_INTEGER;
    for (;;) {
      this.#db.assertOpen();
      const rows = this.#own.withdrawals.all(after, BATCH);
      const batch = rows.map((row) => row.transaction_id as number);
      if (batch.length > 0) yield batch;
      if (batch.length < BATCH) return;
      after = batch.at(-1) ?? after;
      await nextTurn();
    }
  }

  async *streaks(): AsyncGenerator<readonly StoredStreak[]> {
    let after = FIRST;
    for (;;) {
      const batch = this.#db.read(() =>
        this.#own.lanes.all(after, BATCH).map((row) => {
          const prefix = row.prefix as string;
          return { prefix, health: this.#lanes.health(prefix) };
        }),
      );
      if (batch.length > 0) yield batch;
      if (batch.length < BATCH) return;
      after = batch.at(-1)?.prefix ?? after;
      await nextTurn();
    }
  }

  async store(deliveries: readonly StoredDelivery[]): Promise<void> {
    for (let at = 0; at < deliveries.length; at += BATCH) {
      const batch = deliveries.slice(at, at + BATCH);
      await this.#db.write(() => {
        for (const delivery of batch) this.#put(delivery);
        this.#lanes.refresh(new Set(batch.map(({ prefix }) => prefix)));
      });
    }
  }

  async storeWithdrawals(transactionIds: readonly number[]): Promise<void> {
    const nowMs = this.#clock.now();
    await this.#db.write(() => {
      for (const id of transactionIds) this.#common.insertWithdrawal.run(id, nowMs);
    });
  }

  async storeStreaks(streaks: readonly StoredStreak[]): Promise<void> {
    await this.#db.write(() => {
      for (const { prefix, health } of streaks) this.#lanes.setHealth(prefix, health);
    });
  }

  #whole(row: Row): StoredDelivery {
    const attempts = this.#own.attempts.all(row.seq as number).map(toAttempt);
    return { ...toDelivery(row, attempts), endedAtMs: row.endedAtMs as number | null };
  }

  #put(delivery: StoredDelivery): void {
    const { record, attempts } = delivery;
    const { seq } = this.#own.put.get(...valuesOf(delivery)) as { seq: number };
    const { head, mobileNumber, fees, pump, odometer } = record;
    this.#common.purgeRecord.run(seq);
    this.#common.insertRecord.run(seq, head, mobileNumber, fees, pump, odometer);
    this.#common.purgeAttempts.run(seq);
    const kept = attempts.slice(-MAX_ATTEMPTS_KEPT);
    for (const attempt of kept) this.#common.insertAttempt.run(seq, ...attemptValues(attempt));
  }
}

/** In the order of `PUT_COLUMNS`. */
function valuesOf(delivery: StoredDelivery): (string | number | null)[] {
  const { id, prefix, accountId, transactionId, type, createdAtMs, position, recordedAtMs } = delivery;
  const { state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs } = delivery;
  const made = [id, prefix, accountId, transactionId, type, createdAtMs, position, recordedAtMs];
  return [...made, state, reason, endedAtMs, cycle, attemptsInCycle, dueAtMs];
}

const PUT_COLUMNS = [
  ...['id', 'prefix', 'account_id', 'transaction_id', 'type', 'created_at', 'position', 'recorded_at'],
  ...['state', 'reason', 'ended_at', 'cycle', 'attempts_in_cycle', 'due_at'],
];

function prepareOwn(db: Database): Record<OwnStatement, StatementSync> {
  const replaced = PUT_COLUMNS.slice(1).map((column) => `${column} = excluded.${column}`);
  return {
    any: db.prepare('SELECT 1 FROM deliveries LIMIT 1'),
    rename: db.prepare('UPDATE log SET id = ?, started_at = ?'),
    deliveries: db.prepare(
      `SELECT seq, ended_at AS endedAtMs, ${SUMMARY_COLUMNS}, ${RECORD_COLUMNS}
       FROM deliveries JOIN records ON records.delivery = deliveries.seq WHERE id > ? ORDER BY id LIMIT ?`,
    ),
    attempts: db.prepare(KEPT_ATTEMPTS),
    withdrawals: db.prepare(
      'SELECT transaction_id FROM withdrawals WHERE transaction_id > ? ORDER BY transaction_id LIMIT ?',
    ),
    lanes: db.prepare('SELECT prefix FROM lanes WHERE prefix > ? ORDER BY prefix LIMIT ?'),
    put: db.prepare(
      `INSERT INTO deliveries (${PUT_COLUMNS.join(', ')}) VALUES (${PUT_COLUMNS.map(() => '?').join(', ')})
       ON CONFLICT (id) DO UPDATE SET ${replaced.join(', ')}, lease = NULL RETURNING seq`,
    ),
  };
}

type OwnStatement = 'any' | 'rename' | 'deliveries' | 'attempts' | 'withdrawals' | 'lanes' | 'put';
