import { MAX_ATTEMPTS_KEPT } from '../../../push/queue/delivery-queue.ts';
import type { Database } from '../database.ts';
import { RECORD_COLUMNS, SUMMARY_COLUMNS } from './rows.ts';

export type Statements = ReturnType<typeof prepareStatements>;

/** The columns that `nextState` needs of a delivery, and those that carrying it out needs. */
const PROGRESS = `seq, prefix, transaction_id AS transactionId, state, reason, ended_at AS endedAtMs, cycle,
  attempts_in_cycle AS attemptsInCycle, due_at AS dueAtMs, lease AS leaseToken`;
/** Selects a whole delivery without its attempts. */
export const WITH_RECORD = `SELECT seq, ${SUMMARY_COLUMNS}, ${RECORD_COLUMNS}
  FROM deliveries JOIN records ON records.delivery = deliveries.seq`;
/** Selects the attempts that are kept of a delivery, in order; a file of an earlier version may hold more. */
export const KEPT_ATTEMPTS = `SELECT * FROM (
  SELECT * FROM attempts WHERE delivery = ? ORDER BY seq DESC LIMIT ${MAX_ATTEMPTS_KEPT}) ORDER BY seq`;

/** The statements that change the delivery log, except those of its lanes. */
export function prepareStatements(db: Database) {
  return {
    log: db.prepare('SELECT id, started_at FROM log'),
    insert: db.prepare(
      `INSERT INTO deliveries (id, prefix, account_id, transaction_id, type, created_at, position, recorded_at,
         state, reason, ended_at, cycle, attempts_in_cycle, due_at, lease)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 0, ?, ?) ON CONFLICT (id) DO NOTHING`,
    ),
    insertRecord: db.prepare('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'),
    insertAttempt: db.prepare(
      `INSERT INTO attempts (delivery, cycle, number, started_at, duration, outcome)
       VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    dropOldAttempts: db.prepare(
      `DELETE FROM attempts WHERE delivery = ?1 AND seq <= (
         SELECT seq FROM attempts WHERE delivery = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ${MAX_ATTEMPTS_KEPT})`,
    ),
    due: db.prepare(`${WITH_RECORD} WHERE prefix = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?`),
    lease: db.prepare('UPDATE deliveries SET lease = ?, due_at = ? WHERE seq = ?'),
    progress: db.prepare(
      `SELECT ${PROGRESS}, (SELECT head FROM records WHERE delivery = seq) = '' AS isErased
       FROM deliveries WHERE id = ?`,
    ),
    heldOfAccount: db.prepare(
      `SELECT ${PROGRESS} FROM deliveries WHERE state = 'held' AND account_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
    ),
    openOfLane: db.prepare(
      `SELECT ${PROGRESS} FROM deliveries WHERE seq IN (
         SELECT seq FROM deliveries WHERE prefix = ?1 AND due_at IS NOT NULL
         UNION ALL SELECT seq FROM deliveries WHERE prefix = ?1 AND state = 'held' LIMIT ?2)`,
    ),
    openOfTransaction: db.prepare(
      `SELECT ${PROGRESS} FROM deliveries WHERE transaction_id = ? AND ended_at IS NULL`,
    ),
    update: db.prepare(
      `UPDATE deliveries SET state = ?, reason = ?, ended_at = ?, cycle = ?, attempts_in_cycle = ?, due_at = ?,
         lease = ?
       WHERE seq = ?`,
    ),
    isWithdrawn: db.prepare('SELECT 1 FROM withdrawals WHERE transaction_id = ?'),
    insertWithdrawal: db.prepare(
      `INSERT INTO withdrawals VALUES (?, ?)
       ON CONFLICT (transaction_id) DO UPDATE SET made_at = max(made_at, excluded.made_at)`,
    ),
    eraseRecords: db.prepare(
      `UPDATE records SET head = '', mobile_number = NULL, fees = '', pump = NULL, odometer = NULL
       WHERE delivery IN (SELECT seq FROM deliveries WHERE transaction_id = ?)`,
    ),
    eraseAnswers: db.prepare(
      `UPDATE attempts SET outcome = json_replace(outcome, '$.answer.headers', json('{}'), '$.answer.body', '')
       WHERE delivery IN (SELECT seq FROM deliveries WHERE transaction_id = ?)`,
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
  };
}
