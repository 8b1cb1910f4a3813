import type { StatementSync } from 'node:sqlite';
import type { ClaimOptions, WebhookHealth } from '../../../push/queue/delivery-queue.ts';
import { healthy } from '../../../push/queue/failure-streak.ts';
import type { Database } from '../database.ts';
import type { Row } from './rows.ts';

/** The lanes' table: when each lane is next due, and its failure streak. Writes must run in a transaction. */
export class SqliteLanes {
  readonly #due: StatementSync;
  readonly #refresh: StatementSync;
  readonly #nextDue: StatementSync;
  readonly #health: StatementSync;
  readonly #setHealth: StatementSync;
  readonly #endStreakInTime: StatementSync;

  constructor(db: Database) {
    this.#due = db.prepare('SELECT prefix FROM lanes WHERE next_due_at <= ? ORDER BY next_due_at, prefix');
    this.#refresh = db.prepare(
      `INSERT INTO lanes (prefix, next_due_at)
       VALUES (?1, (SELECT min(due_at) FROM deliveries WHERE prefix = ?1 AND due_at IS NOT NULL))
       ON CONFLICT (prefix) DO UPDATE SET next_due_at = excluded.next_due_at
       WHERE next_due_at IS NOT excluded.next_due_at`,
    );
    this.#nextDue = db.prepare('SELECT min(next_due_at) AS at FROM lanes WHERE next_due_at > ?');
    this.#health = db.prepare(
      'SELECT failed_in_a_row, failing_since, last_answers FROM lanes WHERE prefix = ?',
    );
    this.#setHealth = db.prepare(
      `INSERT INTO lanes (prefix, failed_in_a_row, failing_since, last_answers) VALUES (?, ?, ?, ?)
       ON CONFLICT (prefix) DO UPDATE SET failed_in_a_row = excluded.failed_in_a_row,
         failing_since = excluded.failing_since, last_answers = excluded.last_answers`,
    );
    this.#endStreakInTime = db.prepare('UPDATE lanes SET failing_since = NULL WHERE prefix = ?');
  }

  /** Lanes that have something due, the longest waiting first, read one by one. */
  *due(nowMs: number): Generator<string> {
    for (const row of this.#due.iterate(nowMs)) yield row.prefix as string;
  }

  /** Whether a claim with these options may find something. */
  hasWork({ nowMs, limit, laneCapacity }: ClaimOptions): boolean {
    if (limit <= 0) return false;
    for (const prefix of this.due(nowMs)) if (laneCapacity(prefix) > 0) return true;
    return false;
  }

  nextDueAtMs(laterThanMs: number): number | undefined {
    return (this.#nextDue.get(laterThanMs)?.at as number | null) ?? undefined;
  }

  /** Updates the lanes' next due times from their deliveries: for every lane whose deliveries changed. */
  refresh(prefixes: Iterable<string>): void {
    for (const prefix of prefixes) this.#refresh.run(prefix);
  }

  health(prefix: string): WebhookHealth {
    const row: Row | undefined = this.#health.get(prefix);
    if (row === undefined) return healthy();
    return {
      failedInARow: row.failed_in_a_row as number,
      failingSinceMs: row.failing_since as number | null,
      lastAnswers: JSON.parse(row.last_answers as string) as string[],
    };
  }

  setHealth(prefix: string, health: WebhookHealth): void {
    const { failedInARow, failingSinceMs, lastAnswers } = health;
    this.#setHealth.run(prefix, failedInARow, failingSinceMs, JSON.stringify(lastAnswers));
  }

  resetHealth(prefix: string): void {
    this.setHealth(prefix, healthy());
  }

  /** Ends the time of the streak, not the count. */
  endStreakInTime(prefix: string): void {
    this.#endStreakInTime.run(prefix);
  }
}
