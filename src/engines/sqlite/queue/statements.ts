import type { SQLInputValue } from 'node:sqlite';
import { type Attempt, type DeliveryReport, MAX_ATTEMPTS_KEPT } from '../../../push/queue/delivery.ts';
import {
  type DeliveryChange,
  keptAttempt,
  type NextState,
  nextState,
} from '../../../push/queue/next-state.ts';
import {
  ATTEMPT,
  IDENTITY,
  PROGRESS,
  RECORD,
  type Row,
  SUMMARY,
  storedAttempt,
  toProgress,
} from '../../stored/delivery.ts';
import type { Database } from '../driver/database.ts';
import { PART_OF_SEQ } from './schema.ts';

type Names = Readonly<Record<string, string>>;

/** The id says the same as both. */
const ON_SAME = 'ON CONFLICT (transaction_id, prefix)';
const OF_LANE = 'position < ?2 AND cycle BETWEEN ?3 AND ?4';

const DELIVERY: Names = { ...IDENTITY, ...PROGRESS };
export const SUMMARY_COLUMNS = columnsOf(SUMMARY);
/** Selects the delivery of an id, the parameter `?1`: a search in each part of their index, the newest first. */
export const OF_ID = `seq = (
  WITH RECURSIVE part (n) AS (
    SELECT (SELECT max(${PART_OF_SEQ}) FROM deliveries)
    UNION ALL SELECT n - 1 FROM part WHERE n > (SELECT min(${PART_OF_SEQ}) FROM deliveries))
  SELECT seq FROM part CROSS JOIN deliveries INDEXED BY by_id ON ${PART_OF_SEQ} = n AND id = ?1 LIMIT 1)`;
/** Selects a whole delivery without its attempts. */
export const WITH_RECORD = `SELECT seq, ended_at, ${SUMMARY_COLUMNS}, ${columnsOf(RECORD)}
  FROM deliveries JOIN records ON records.delivery = deliveries.seq`;
/** The columns that `nextState` needs of a delivery, and those that carrying it out needs. */
const CHANGING = `seq, prefix, transaction_id, ${columnsOf(PROGRESS)}`;

export type Statements = ReturnType<typeof prepareStatements>;

/** The statements that change the delivery log, except those of its lanes. */
export function prepareStatements(db: Database) {
  const replaced = setOf(Object.values(DELIVERY), (column) => `excluded.${column}`);
  return {
    insert: db.prepare(`${insertInto('deliveries', DELIVERY)} ${ON_SAME} DO NOTHING RETURNING seq`),
    put: db.prepare(
      `${insertInto('deliveries', DELIVERY)} ${ON_SAME} DO UPDATE SET ${replaced} RETURNING seq`,
    ),
    setRecord: db.prepare(insertInto('records', { delivery: 'delivery', ...RECORD }, 'INSERT OR REPLACE')),
    insertAttempt: db.prepare(insertInto('attempts', { delivery: 'delivery', ...ATTEMPT })),
    dropOldAttempts: db.prepare(
      `DELETE FROM attempts WHERE delivery = ?1 AND seq <= (
         SELECT seq FROM attempts WHERE delivery = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ${MAX_ATTEMPTS_KEPT})`,
    ),
    due: db.prepare(`${WITH_RECORD} WHERE prefix = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?`),
    lease: db.prepare('UPDATE deliveries SET lease = ?, due_at = ? WHERE seq = ?'),
    one: db.prepare(`SELECT ${CHANGING} FROM deliveries WHERE ${OF_ID}`),
    // A pending one has its record: it is not read again for each.
    reported: db.prepare(
      `SELECT ${CHANGING}, iif(state = 'pending', '{', (SELECT head FROM records WHERE delivery = seq)) AS head
       FROM deliveries WHERE transaction_id = ? AND prefix = ?`,
    ),
    heldOfAccount: db.prepare(
      `SELECT ${CHANGING} FROM deliveries WHERE state = 'held' AND account_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
    ),
    nextHeldAccount: db.prepare(
      `SELECT account_id FROM deliveries WHERE state = 'held' AND account_id > ? ORDER BY account_id LIMIT 1`,
    ),
    openOfLane: db.prepare(
      `SELECT ${CHANGING} FROM deliveries WHERE seq IN (
         SELECT seq FROM deliveries WHERE prefix = ?1 AND due_at IS NOT NULL AND ${OF_LANE}
         UNION ALL SELECT seq FROM deliveries WHERE prefix = ?1 AND state = 'held' AND ${OF_LANE} LIMIT ?5)`,
    ),
    openOfTransaction: db.prepare(
      `SELECT ${CHANGING} FROM deliveries WHERE transaction_id = ? AND ended_at IS NULL`,
    ),
    update: db.prepare(`UPDATE deliveries SET ${setOf(Object.values(PROGRESS), () => '?')} WHERE seq = ?`),
    withdrawnOf: db.prepare(
      'SELECT transaction_id AS id FROM withdrawals WHERE transaction_id IN (SELECT value FROM json_each(?))',
    ),
    insertWithdrawal: db.prepare(
      `INSERT INTO withdrawals VALUES (?, ?)
       ON CONFLICT (transaction_id) DO UPDATE SET made_at = max(made_at, excluded.made_at)`,
    ),
    recordsOf: db.prepare(`${WITH_RECORD} WHERE transaction_id = ?`),
    eraseAnswers: db.prepare(
      `UPDATE attempts SET outcome = json_replace(outcome, '$.answer.headers', json('{}'), '$.answer.body', '')
       WHERE delivery = ?`,
    ),
    purge: db.prepare(
      `DELETE FROM deliveries WHERE seq IN (
         SELECT seq FROM deliveries WHERE ended_at < ? ORDER BY ended_at, seq LIMIT ?)
       RETURNING seq`,
    ),
    purgeWithdrawals: db.prepare(
      `DELETE FROM withdrawals WHERE transaction_id IN (
         SELECT transaction_id FROM withdrawals WHERE made_at < ? ORDER BY made_at LIMIT ?)`,
    ),
    purgeRecord: db.prepare('DELETE FROM records WHERE delivery = ?'),
    purgeAttempts: db.prepare('DELETE FROM attempts WHERE delivery = ?'),
    log: db.prepare('SELECT id, started_at FROM log'),
    renameLog: db.prepare('UPDATE log SET id = ?, started_at = ?'),
    anyDelivery: db.prepare('SELECT 1 FROM deliveries LIMIT 1'),
  };
}

/** A delivery as `insert` and `put` take it. */
export function deliveryValues(delivery: object): SQLInputValue[] {
  return valuesOf(DELIVERY, delivery);
}

/** A record as `setRecord` takes it after the delivery's number. */
export function recordValues(record: object): SQLInputValue[] {
  return valuesOf(RECORD, record);
}

export function attemptValues(attempt: Attempt): SQLInputValue[] {
  return Object.values(storedAttempt(attempt)) as SQLInputValue[];
}

/**
 * Carries out a change of a row that one of the statements selected; `undefined` where it changes nothing. Must run in a
 * transaction, after which the lane is refreshed.
 */
export function changeRow(
  statements: Statements,
  row: Row,
  change: DeliveryReport | DeliveryChange,
  nowMs: number,
): NextState | undefined {
  const next = nextState(toProgress(row), change, nowMs);
  if (next === undefined) return undefined;
  const seq = row.seq as number;
  statements.update.run(...valuesOf(PROGRESS, next.progress), seq);
  if (next.attempt !== undefined) {
    const kept = keptAttempt(next.attempt, { head: row.head as string });
    statements.insertAttempt.run(seq, ...attemptValues(kept));
    if (next.progress.cycle > 1) statements.dropOldAttempts.run(seq); // the first has only a few
  }
  return next;
}

/** Those of the transactions that are withdrawn. */
export function withdrawnAmong(
  { withdrawnOf }: Statements,
  transactionIds: readonly number[],
): ReadonlySet<number> {
  return new Set(withdrawnOf.all(JSON.stringify(transactionIds)).map(({ id }) => id as number));
}

export function columnsOf(names: Names): string {
  return Object.values(names).join(', ');
}

function insertInto(table: string, names: Names, verb = 'INSERT'): string {
  const marks = Object.keys(names).map(() => '?');
  return `${verb} INTO ${table} (${columnsOf(names)}) VALUES (${marks.join(', ')})`;
}

function setOf(columns: readonly string[], value: (column: string) => string): string {
  return columns.map((column) => `${column} = ${value(column)}`).join(', ');
}

/** By the port's names, in the order of the columns. */
function valuesOf(names: Names, value: object): SQLInputValue[] {
  const values = value as Readonly<Record<string, SQLInputValue>>;
  return Object.keys(names).map((name) => values[name] ?? null);
}
