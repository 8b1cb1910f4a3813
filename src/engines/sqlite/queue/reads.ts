import type { SQLInputValue } from 'node:sqlite';
import { type DeliveryState, MAX_ATTEMPTS_KEPT } from '../../../push/queue/delivery.ts';
import type {
  Backlog,
  DeliveryFilter,
  DeliveryPage,
  DeliveryPlace,
  DeliveryReads,
  LaneReads,
  PageOptions,
} from '../../../push/queue/delivery-reads.ts';
import {
  LOGGED,
  newestFirst,
  StoredBatch,
  toDelivery,
  toLaneAttempt,
  toLogged,
  toStoredDelivery,
  toSummary,
} from '../../stored/delivery.ts';
import { type Condition, type Selection, selectionOf } from '../../stored/delivery-index.ts';
import type { Database } from '../driver/database.ts';
import { type SqliteLanes, toHealth } from './lanes.ts';
import { columnsOf, OF_ID, SUMMARY_COLUMNS, WITH_RECORD } from './statements.ts';

const BATCH = 500;
/** A query uses a partial index only where it repeats the index's condition. */
const RARE_STATES: readonly DeliveryState[] = ['failed', 'held', 'withdrawn'];
const PARTIAL: Readonly<Partial<Record<string, string>>> = {
  by_state: `state IN (${RARE_STATES.map((state) => `'${state}'`).join(', ')})`,
  due_in_lane: 'due_at IS NOT NULL',
  held_of_account: "state = 'held'",
  held_of_lane: "state = 'held'",
  failing: 'failed_in_a_row > 0',
};
const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC';

/** The queries of the delivery log. */
export function sqliteReads(db: Database): DeliveryReads {
  const log = db.prepare('SELECT id, started_at FROM log');
  const one = db.prepare(`${WITH_RECORD} WHERE ${OF_ID}`);
  const next = db.prepare(`${WITH_RECORD} WHERE transaction_id > ? ORDER BY transaction_id`);
  // A file of an earlier version may hold more than are kept.
  const attemptsOf = db.prepare(
    `SELECT * FROM (
       SELECT * FROM attempts WHERE delivery = ? ORDER BY seq DESC LIMIT ${MAX_ATTEMPTS_KEPT}) ORDER BY seq`,
  );
  const lanesOfAccount = db.prepare('SELECT prefix FROM lanes WHERE account_id = ?');
  const nextWithdrawn = db.prepare(
    `SELECT transaction_id AS id FROM withdrawals WHERE transaction_id > ? ORDER BY transaction_id LIMIT ${BATCH}`,
  );
  const ofTransactions = db.prepare(
    `SELECT ${columnsOf(LOGGED)} FROM deliveries INDEXED BY by_transaction
     WHERE transaction_id IN (SELECT value FROM json_each(?))`,
  );
  const transactionsAfter = db.prepare(
    `SELECT DISTINCT transaction_id AS id FROM deliveries INDEXED BY by_transaction
     WHERE transaction_id > ? ORDER BY transaction_id LIMIT ?`,
  );
  return {
    logId: async () =>
      db.read(() => {
        const row = log.get() as { id: string; started_at: number };
        return { id: row.id, startedAtMs: row.started_at };
      }),
    find: async (id) =>
      db.read(() => {
        const row = one.get(id);
        return row && toDelivery(row, row, attemptsOf.all(row.seq as number));
      }),
    page: async (filter, options) =>
      db.read(() => {
        const { accountId, ...others } = filter;
        const isOfLanes = accountId !== undefined && selectionOf(filter, RARE_STATES).index === 'by_account';
        if (!isOfLanes) return readPage(db, filter, options);
        const prefixes = lanesOfAccount.all(accountId).map(({ prefix }) => prefix as string);
        const maxRead = Math.ceil((options.maxRead ?? Infinity) / prefixes.length);
        const read = (prefix: string) => readPage(db, { ...others, prefix }, { ...options, maxRead });
        return mergedPage(prefixes.map(read), options);
      }),
    ofTransactions: async (ids) => db.read(() => ofTransactions.all(JSON.stringify(ids)).map(toLogged)),
    transactionsAfter: async (afterId, limit) =>
      db.read(() => transactionsAfter.all(afterId, limit).map(({ id }) => id as number)),
    storedAfter: async (after) =>
      db.read(() => {
        const batch = new StoredBatch();
        for (const row of next.iterate(after)) {
          if (!batch.take(toStoredDelivery(row, row, attemptsOf.all(row.seq as number)))) break;
        }
        return batch.deliveries;
      }),
    withdrawnAfter: async (after) => db.read(() => nextWithdrawn.all(after).map(({ id }) => id as number)),
  };
}

export function sqliteLaneReads(db: Database, lanes: SqliteLanes): LaneReads {
  const failing = db.prepare(
    `SELECT * FROM lanes INDEXED BY failing WHERE ${PARTIAL.failing} ORDER BY failed_in_a_row DESC LIMIT ?`,
  );
  const newestAttempts = db.prepare(
    `SELECT attempted.id, attempts.* FROM (
       SELECT seq, id FROM (
         SELECT seq, id, cycle, attempts_in_cycle FROM deliveries INDEXED BY by_lane
         WHERE prefix = ? ORDER BY created_at DESC LIMIT ?)
       WHERE attempts_in_cycle > 0 OR cycle > 1 LIMIT ?) AS attempted
     CROSS JOIN attempts ON attempts.delivery = attempted.seq ORDER BY started_at`,
  );
  const ofAll = db.prepare(
    `SELECT ${counted('deliveries', 'due_in_lane')} AS pending, ${counted('deliveries', 'held_of_account')} AS held,
       ${counted('lanes', 'failing')} AS failingLanes, (SELECT min(next_due_at) FROM lanes WHERE next_due_at > -1) AS due`,
  );
  const ofLane = db.prepare(
    `SELECT ${counted('deliveries', 'due_in_lane', 'prefix = ?2')} AS pending,
       ${counted('deliveries', 'held_of_lane', 'prefix = ?2')} AS held,
       (SELECT count(*) FROM lanes WHERE prefix = ?2 AND failed_in_a_row > 0) AS failingLanes,
       (SELECT next_due_at FROM lanes WHERE prefix = ?2) AS due`,
  );
  return {
    health: async (prefix) => db.read(() => lanes.health(prefix)),
    failingLanes: async (limit) =>
      db.read(() => failing.all(limit).map((row) => ({ prefix: row.prefix as string, ...toHealth(row) }))),
    attempts: async (prefix, { deliveries, maxRead }) =>
      db.read(() =>
        newestAttempts.all(prefix, maxRead, deliveries).map((row) => toLaneAttempt(row.id as string, row)),
      ),
    backlog: async (limit, prefix) =>
      db.read(() => {
        const row = prefix === undefined ? ofAll.get(limit) : ofLane.get(limit, prefix);
        const { due, ...counts } = row as unknown as Omit<Backlog, 'nextDueAtMs'> & { due: number | null };
        return { ...counts, nextDueAtMs: due ?? undefined };
      }),
  };
}

function counted(table: string, index: string, condition = 'TRUE'): string {
  return `(SELECT count(*) FROM (
    SELECT 1 FROM ${table} INDEXED BY ${index} WHERE ${PARTIAL[index]} AND ${condition} LIMIT ?1))`;
}

function readPage(
  db: Database,
  filter: DeliveryFilter,
  { limit, after, maxRead = Infinity }: PageOptions,
): DeliveryPage {
  const { index, inIndex, others } = selectionOf(filter, RARE_STATES);
  const isPending =
    filter.state === 'pending' && index !== 'by_transaction' && hasFewPending(db, filter, maxRead);
  const isWhole = maxRead === Infinity || index === 'by_transaction' || isPending;
  const read = queryOf(isPending ? 'due_in_lane' : index, isWhole ? [...inIndex, ...others] : inIndex, after);
  const rest = whereOf(isWhole ? [] : others);
  const rows = db
    .prepare(
      isWhole
        ? `SELECT ${SUMMARY_COLUMNS} ${read.sql} LIMIT ?`
        : `SELECT ${SUMMARY_COLUMNS} FROM (SELECT * ${read.sql} LIMIT ${maxRead}) WHERE ${rest.sql} ${NEWEST_FIRST} LIMIT ?`,
    )
    .all(...read.values, ...rest.values, limit + 1);
  const deliveries = rows.slice(0, limit).map(toSummary);
  if (isWhole || rows.length > limit)
    return { deliveries, next: rows.length > limit ? deliveries.at(-1) : undefined };
  const last = db.prepare(`SELECT created_at AS createdAtMs, id ${read.sql} LIMIT 1 OFFSET ?`);
  return { deliveries, next: last.get(...read.values, maxRead - 1) as DeliveryPlace | undefined };
}

/** One page of several lanes. What is older than where the reading of one of them ended is of the next page. */
function mergedPage(pages: readonly DeliveryPage[], { limit }: PageOptions): DeliveryPage {
  const [readTo] = pages.flatMap(({ next }) => next ?? []).sort(newestFirst);
  const found = pages.flatMap(({ deliveries }) => deliveries).sort(newestFirst);
  const read = found.filter((delivery) => readTo === undefined || newestFirst(delivery, readTo) <= 0);
  const deliveries = read.slice(0, limit);
  return { deliveries, next: read.length > limit ? deliveries.at(-1) : readTo };
}

/** No index has pending ones by their time: few are sorted, among many the newest are looked through as any others. */
function hasFewPending(db: Database, { prefix }: DeliveryFilter, few: number): boolean {
  if (few === Infinity) return true;
  const ofLane = prefix === undefined ? 'TRUE' : 'prefix = ?2';
  const counting = db.prepare(`SELECT ${counted('deliveries', 'due_in_lane', ofLane)} AS pending`);
  const found = prefix === undefined ? counting.get(few + 1) : counting.get(few + 1, prefix);
  return (found?.pending as number) <= few;
}

/** Reads newest first by an index. */
export function queryOf(
  index: Selection['index'] | 'due_in_lane',
  conditions: readonly Condition[],
  after?: DeliveryPlace,
): { readonly sql: string; readonly values: readonly SQLInputValue[] } {
  const { sql, values } = whereOf(conditions);
  const older = after === undefined ? 'TRUE' : '(created_at, id) < (?, ?)';
  const place = after === undefined ? [] : [after.createdAtMs, after.id];
  return {
    sql: `FROM deliveries INDEXED BY ${index} WHERE ${PARTIAL[index] ?? 'TRUE'} AND ${sql} AND ${older} ${NEWEST_FIRST}`,
    values: [...values, ...place],
  };
}

function whereOf(conditions: readonly Condition[]) {
  const sql = conditions.map(({ field, is }) => `${field} ${is} ?`).join(' AND ');
  return { sql: sql === '' ? 'TRUE' : sql, values: conditions.map(({ value }) => value) };
}
