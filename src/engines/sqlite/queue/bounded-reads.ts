import type { SQLInputValue, StatementSync } from 'node:sqlite';
import { shortAnswer } from '../../../push/queue/answer.ts';
import type {
  BoundedPage,
  BoundedPageOptions,
  BoundedReads,
  LaneAttempt,
  LaneBacklog,
  LaneStreak,
} from '../../../push/queue/bounded-reads.ts';
import type { AttemptOutcome, DeliveryFilter, DeliveryPlace } from '../../../push/queue/delivery-queue.ts';
import type { Database } from '../database.ts';
import { IS_RARE, indexOf, type SqliteDeliveryReader } from './reader.ts';
import { type Row, SUMMARY_COLUMNS, toSummary } from './rows.ts';

const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC';
/** What each index holds besides the time, by which it is ordered. */
const INDEXED: Readonly<Record<string, readonly string[]>> = {
  by_state: ['state', 'prefix', 'account_id'],
  by_lane: ['prefix'],
  by_account: ['account_id'],
  by_time: [],
};

export class SqliteBoundedReads implements BoundedReads {
  readonly #db: Database;
  readonly #reader: SqliteDeliveryReader;
  readonly #pending: StatementSync;
  readonly #failing: StatementSync;
  readonly #attempts: StatementSync;
  readonly #ofLane: StatementSync;

  constructor(db: Database, reader: SqliteDeliveryReader) {
    this.#db = db;
    this.#reader = reader;
    this.#pending = db.prepare(
      `SELECT count(*) AS pending FROM (
         SELECT 1 FROM deliveries INDEXED BY due_in_lane WHERE due_at IS NOT NULL LIMIT ?)`,
    );
    this.#failing = db.prepare(
      `SELECT prefix, failed_in_a_row, failing_since, last_answers FROM lanes INDEXED BY failing
       WHERE failed_in_a_row > 0 ORDER BY failed_in_a_row DESC LIMIT ?`,
    );
    this.#attempts = db.prepare(
      `SELECT attempted.id, started_at, duration, outcome FROM (
         SELECT seq, id FROM (
           SELECT seq, id, cycle, attempts_in_cycle, state FROM deliveries INDEXED BY by_lane
           WHERE prefix = ? ORDER BY created_at DESC LIMIT ?)
         WHERE attempts_in_cycle > 0 OR cycle > 1 LIMIT ?) AS attempted
       CROSS JOIN attempts ON attempts.delivery = attempted.seq ORDER BY started_at`,
    );
    const counted = (index: string, condition: string): string =>
      `(SELECT count(*) FROM (
         SELECT 1 FROM deliveries INDEXED BY ${index} WHERE prefix = ?1 AND ${condition} LIMIT ?2))`;
    this.#ofLane = db.prepare(
      `SELECT ${counted('due_in_lane', 'due_at IS NOT NULL')} AS pending,
         ${counted('held_of_lane', "state = 'held'")} AS held,
         (SELECT next_due_at FROM lanes WHERE prefix = ?1) AS due`,
    );
  }

  async page(filter: DeliveryFilter, options: BoundedPageOptions): Promise<BoundedPage> {
    const { limit, after, maxRead } = options;
    if (filter.transactionId !== undefined || (await this.#areFewPending(filter, maxRead))) {
      const found = this.#reader.list(filter, { limit: limit + 1, after });
      const deliveries = found.slice(0, limit);
      return { deliveries, next: found.length > limit ? deliveries.at(-1) : undefined };
    }
    return this.#db.read(() => {
      const { read, values, rest, restValues } = this.#selectionOf(filter, after);
      const rows = this.#db
        .prepare(
          `SELECT ${SUMMARY_COLUMNS} FROM (SELECT * ${read} LIMIT ?) AS entries
           WHERE ${rest} ${NEWEST_FIRST} LIMIT ?`,
        )
        .all(...values, maxRead, ...restValues, limit + 1);
      const deliveries = rows.slice(0, limit).map(toSummary);
      if (rows.length > limit) return { deliveries, next: deliveries.at(-1) };
      const last = this.#db.prepare(`SELECT created_at AS createdAtMs, id ${read} LIMIT 1 OFFSET ?`);
      return { deliveries, next: last.get(...values, maxRead - 1) as DeliveryPlace | undefined };
    });
  }

  async failingLanes(limit: number): Promise<readonly LaneStreak[]> {
    this.#db.assertOpen();
    return this.#failing.all(limit).map((row: Row) => ({
      prefix: row.prefix as string,
      failedInARow: row.failed_in_a_row as number,
      failingSinceMs: row.failing_since as number | null,
      lastAnswers: JSON.parse(row.last_answers as string) as string[],
    }));
  }

  async attempts(
    prefix: string,
    { deliveries, maxRead }: { readonly deliveries: number; readonly maxRead: number },
  ): Promise<readonly LaneAttempt[]> {
    this.#db.assertOpen();
    return this.#attempts.all(prefix, maxRead, deliveries).map((row: Row) => {
      const outcome = JSON.parse(row.outcome as string) as AttemptOutcome;
      return {
        deliveryId: row.id as string,
        startedAtMs: row.started_at as number,
        durationMs: row.duration as number,
        ok: outcome.ok,
        answer: shortAnswer(outcome),
      };
    });
  }

  async laneBacklog(prefix: string, limit: number): Promise<LaneBacklog> {
    this.#db.assertOpen();
    const { pending, held, due } = this.#ofLane.get(prefix, limit) as Row;
    return {
      pending: pending as number,
      held: held as number,
      nextDueAtMs: (due as number | null) ?? undefined,
    };
  }

  /** No index has pending ones by their time: few are sorted, among many the newest are looked through as any others. */
  async #areFewPending({ state, prefix }: DeliveryFilter, few: number): Promise<boolean> {
    if (state !== 'pending') return false;
    if (prefix !== undefined) return (await this.laneBacklog(prefix, few + 1)).pending <= few;
    this.#db.assertOpen();
    return (this.#pending.get(few + 1)?.pending as number) <= few;
  }

  /** `read` selects by the index alone, newest first; `rest` are the conditions on what was read. */
  #selectionOf(filter: DeliveryFilter, after: DeliveryPlace | undefined) {
    const { state, prefix, accountId, sinceMs, untilMs } = filter;
    const index = indexOf(state === 'pending' ? { ...filter, state: undefined } : filter);
    const [inIndex, values]: [string[], SQLInputValue[]] = [['TRUE'], []];
    const [afterwards, restValues]: [string[], SQLInputValue[]] = [['TRUE'], []];
    for (const [column, value] of Object.entries({ state, prefix, account_id: accountId })) {
      if (value === undefined) continue;
      const isIndexed = INDEXED[index]?.includes(column) === true;
      (isIndexed ? inIndex : afterwards).push(`${column} = ?`);
      (isIndexed ? values : restValues).push(value);
    }
    if (index === 'by_state') inIndex.push(IS_RARE);
    for (const [condition, ms] of [
      ['created_at >= ?', sinceMs],
      ['created_at <= ?', untilMs],
    ] as const) {
      if (ms === undefined) continue;
      inIndex.push(condition);
      values.push(ms);
    }
    if (after !== undefined) {
      inIndex.push('(created_at, id) < (?, ?)');
      values.push(after.createdAtMs, after.id);
    }
    const read = `FROM deliveries INDEXED BY ${index} WHERE ${inIndex.join(' AND ')} ${NEWEST_FIRST}`;
    return { read, values, rest: afterwards.join(' AND '), restValues };
  }
}
