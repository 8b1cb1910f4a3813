import type { WebhookHealth } from '../../../push/queue/delivery.ts';
import type { ClaimOptions } from '../../../push/queue/delivery-queue.ts';
import { healthy } from '../../../push/queue/failure-streak.ts';
import { fromStored, type Row, STREAK } from '../../stored/delivery.ts';
import type { Database } from '../driver/database.ts';

export type SqliteLanes = ReturnType<typeof sqliteLanes>;

/** The lanes' table: when each lane is next due, and its failure streak. Writes must run in a transaction. */
export function sqliteLanes(db: Database) {
  const dueLanes = db.prepare('SELECT prefix FROM lanes WHERE next_due_at <= ? ORDER BY next_due_at, prefix');
  const refresh = db.prepare(
    `INSERT INTO lanes (prefix, next_due_at, account_id)
     VALUES (?1, (SELECT min(due_at) FROM deliveries WHERE prefix = ?1 AND due_at IS NOT NULL),
       coalesce((SELECT account_id FROM lanes WHERE prefix = ?1),
         (SELECT account_id FROM deliveries WHERE prefix = ?1 LIMIT 1))) -- read for the first one alone
     ON CONFLICT (prefix) DO UPDATE SET next_due_at = excluded.next_due_at, account_id = excluded.account_id
     WHERE next_due_at IS NOT excluded.next_due_at OR account_id IS NULL`,
  );
  const nextDue = db.prepare('SELECT min(next_due_at) AS at FROM lanes WHERE next_due_at > ?');
  const streak = db.prepare('SELECT * FROM lanes WHERE prefix = ?');
  const setStreak = db.prepare(
    `INSERT INTO lanes (prefix, failed_in_a_row, failing_since, last_answers) VALUES (?, ?, ?, ?)
     ON CONFLICT (prefix) DO UPDATE SET failed_in_a_row = excluded.failed_in_a_row,
       failing_since = excluded.failing_since, last_answers = excluded.last_answers`,
  );
  const setReset = db.prepare(
    `INSERT INTO lanes (prefix, reset_at) VALUES (?, ?)
     ON CONFLICT (prefix) DO UPDATE SET reset_at = excluded.reset_at WHERE reset_at < excluded.reset_at`,
  );
  const endStreakInTime = db.prepare('UPDATE lanes SET failing_since = NULL WHERE prefix = ?');

  /** The lanes that have something due, the longest waiting first, read one by one. */
  function* due(nowMs: number): Generator<string> {
    for (const row of dueLanes.iterate(nowMs)) yield row.prefix as string;
  }
  return {
    due,
    /** Whether a claim with these options may find something. */
    hasWork({ nowMs, limit, laneCapacity }: ClaimOptions): boolean {
      if (limit <= 0) return false;
      for (const prefix of due(nowMs)) if (laneCapacity(prefix) > 0) return true;
      return false;
    },
    nextDueAtMs: (laterThanMs: number) => (nextDue.get(laterThanMs)?.at as number | null) ?? undefined,
    /** Updates the lanes' next due times from their deliveries: for every lane whose deliveries changed. */
    refresh(prefixes: Iterable<string>): void {
      for (const prefix of prefixes) refresh.run(prefix);
    },
    health(prefix: string): WebhookHealth {
      const row = streak.get(prefix);
      return row === undefined ? healthy() : toHealth(row);
    },
    setHealth(prefix: string, { failedInARow, failingSinceMs, lastAnswers }: WebhookHealth): void {
      setStreak.run(prefix, failedInARow, failingSinceMs, JSON.stringify(lastAnswers));
    },
    /** False where the streak was reset as of then, or later, before. */
    markReset: (prefix: string, enabledAtMs: number) => setReset.run(prefix, enabledAtMs).changes > 0,
    /** Ends the time of the streak, not the count. */
    endStreakInTime: (prefix: string) => void endStreakInTime.run(prefix),
  };
}

export function toHealth(row: Row): WebhookHealth {
  const lastAnswers = JSON.parse(row.last_answers as string) as string[];
  return { ...fromStored(STREAK, row), lastAnswers };
}
