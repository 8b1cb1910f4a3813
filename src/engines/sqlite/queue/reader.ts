import type { SQLInputValue, StatementSync } from 'node:sqlite';
import type {
  Backlog,
  Delivery,
  DeliveryFilter,
  DeliveryPage,
  DeliveryState,
  DeliverySummary,
  LoggedDelivery,
} from '../../../push/queue/delivery-queue.ts';
import type { Database } from '../database.ts';
import { type Row, SUMMARY_COLUMNS, toAttempt, toDelivery, toSummary } from './rows.ts';
import { KEPT_ATTEMPTS, WITH_RECORD } from './statements.ts';

/** A query uses a partial index only where it repeats the index's condition. */
const RARE_STATES: readonly DeliveryState[] = ['failed', 'held', 'withdrawn'];
export const IS_RARE = `state IN (${RARE_STATES.map((state) => `'${state}'`).join(', ')})`;

type LoggedValues = [string, string, number, number, DeliveryState, number];

/** The queries of the delivery log. Each method reads one snapshot and throws `STORE_CLOSED` after `close`. */
export class SqliteDeliveryReader {
  readonly #db: Database;
  readonly #heldAccount: StatementSync;
  readonly #delivery: StatementSync;
  readonly #attempts: StatementSync;
  readonly #open: StatementSync;
  readonly #ofTransactions: StatementSync;
  readonly #transactionsAfter: StatementSync;

  constructor(db: Database) {
    this.#db = db;
    this.#heldAccount = db.prepare(
      `SELECT account_id FROM deliveries WHERE state = 'held' AND account_id > ? ORDER BY account_id LIMIT 1`,
    );
    this.#delivery = db.prepare(`${WITH_RECORD} WHERE id = ?`);
    this.#attempts = db.prepare(KEPT_ATTEMPTS);
    const counted = (index: string, condition: string): string =>
      `(SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY ${index} WHERE ${condition} LIMIT ?1))`;
    this.#open = db.prepare(
      `SELECT ${counted('due_in_lane', 'due_at IS NOT NULL')} AS pending,
         ${counted('held_of_account', "state = 'held'")} AS held,
         (SELECT count(*) FROM (
           SELECT 1 FROM lanes INDEXED BY failing WHERE failed_in_a_row > 0 LIMIT ?1)) AS failingLanes`,
    );
    this.#ofTransactions = db.prepare(
      `SELECT id, prefix, account_id, transaction_id, state, recorded_at
       FROM deliveries INDEXED BY by_transaction WHERE transaction_id IN (SELECT value FROM json_each(?))`,
    );
    this.#ofTransactions.setReturnArrays(true); // half of the time that objects take
    this.#transactionsAfter = db.prepare(
      `SELECT DISTINCT transaction_id AS id FROM deliveries INDEXED BY by_transaction
       WHERE transaction_id > ? ORDER BY transaction_id LIMIT ?`,
    );
  }

  /** One index search for each account, however many deliveries it has. */
  heldAccounts(): number[] {
    const after = (accountId: number): number | undefined =>
      this.#heldAccount.get(accountId)?.account_id as number | undefined;
    return this.#db.read(() => {
      const accounts: number[] = [];
      for (let id = after(Number.MIN_SAFE_INTEGER); id !== undefined; id = after(id)) accounts.push(id);
      return accounts;
    });
  }

  find(id: string): Delivery | undefined {
    return this.#db.read(() => {
      const row: Row | undefined = this.#delivery.get(id);
      return row && toDelivery(row, this.#attempts.all(row.seq as number).map(toAttempt));
    });
  }

  list(filter: DeliveryFilter, { limit, after }: DeliveryPage): DeliverySummary[] {
    return this.#db.read(() => {
      const { sql, values } = selectionOf(filter);
      const place = after === undefined ? [] : [after.createdAtMs, after.id];
      const statement = this.#db.prepare(
        `SELECT ${SUMMARY_COLUMNS} ${sql} ${after === undefined ? '' : 'AND (created_at, id) < (?, ?)'}
         ORDER BY created_at DESC, id DESC LIMIT ?`,
      );
      return statement.all(...values, ...place, limit).map(toSummary);
    });
  }

  countByState(filter: DeliveryFilter): Record<DeliveryState, number> {
    const { sql, values } = selectionOf(filter);
    const counts = { pending: 0, held: 0, delivered: 0, failed: 0, withdrawn: 0 };
    const rows = this.#db.prepare(`SELECT state, count(*) AS count ${sql} GROUP BY state`).all(...values);
    for (const row of rows) counts[row.state as DeliveryState] = row.count as number;
    return counts;
  }

  backlog(limit: number): Backlog {
    this.#db.assertOpen();
    const { pending, held, failingLanes } = this.#open.get(limit) as unknown as Backlog;
    return { pending, held, failingLanes };
  }

  ofTransactions(transactionIds: readonly number[]): LoggedDelivery[] {
    this.#db.assertOpen();
    const found = this.#ofTransactions.all(JSON.stringify(transactionIds)) as unknown as LoggedValues[];
    return found.map(([id, prefix, accountId, transactionId, state, recordedAtMs]) => {
      return { id, prefix, accountId, transactionId, state, recordedAtMs };
    });
  }

  transactionsAfter(afterId: number, limit: number): number[] {
    this.#db.assertOpen();
    return this.#transactionsAfter.all(afterId, limit).map((row) => row.id as number);
  }
}

/** The `FROM` and `WHERE` of a query, and its values. */
interface Selection {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

/** Selects a filter's deliveries by the index that leaves the least to read. */
export function selectionOf(filter: DeliveryFilter): Selection {
  const index = indexOf(filter);
  const conditions: string[] = ['TRUE'];
  const values: SQLInputValue[] = [];
  if (index === 'by_state') conditions.push(IS_RARE);
  if (index === 'due_in_lane') conditions.push('due_at IS NOT NULL');
  const where = (condition: string, value: SQLInputValue | undefined): void => {
    if (value === undefined) return;
    conditions.push(condition);
    values.push(value);
  };
  where('transaction_id = ?', filter.transactionId);
  where('state = ?', filter.state);
  where('prefix = ?', filter.prefix);
  where('account_id = ?', filter.accountId);
  where('created_at >= ?', filter.sinceMs);
  where('created_at <= ?', filter.untilMs);
  return { sql: `FROM deliveries INDEXED BY ${index} WHERE ${conditions.join(' AND ')}`, values };
}

/** The index that leaves the least to read. */
export function indexOf(filter: DeliveryFilter): string {
  if (filter.transactionId !== undefined) return 'by_transaction';
  if (filter.state !== undefined && RARE_STATES.includes(filter.state)) return 'by_state';
  if (filter.state === 'pending') return 'due_in_lane'; // pending ones are sorted, ended ones are not read
  if (filter.prefix !== undefined) return 'by_lane';
  return filter.accountId === undefined ? 'by_time' : 'by_account';
}
