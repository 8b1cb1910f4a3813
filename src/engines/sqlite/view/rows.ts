import {
  idOfChange,
  type RowState,
  type TransactionChange,
  type TransactionRow,
  transition,
} from '../../../../projections/transactions.ts';
import type { Clock } from '../../../base/clock.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { ERASED_REVISION, type Position } from '../../../event-store/event-store.ts';
import type { ViewChange } from '../../../pull/record/project-event.ts';
import type { ParkedTransactionEvent } from '../../../pull/view/checkpoint.ts';
import { statusCode } from '../../../pull/view/status-codes.ts';
import type { Database } from '../driver/database.ts';
import { ROW_COLUMNS, toRow } from './row-values.ts';

/** The rows and parked events of one file. What writes must be called within a write transaction. */
export class Rows {
  readonly #clock: Clock;
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(db: Database, clock: Clock) {
    this.#clock = clock;
    this.#statements = prepareStatements(db);
  }

  find(transactionId: number): TransactionRow | 'hidden' | undefined {
    const row = this.#statements.row.get(transactionId);
    if (row === undefined) return undefined;
    return row.status === null ? 'hidden' : toRow(row);
  }

  parked(after: Position, limit: number): ParkedTransactionEvent[] {
    return this.#statements.parked.all(after, limit).map((row) => ({
      position: row.position as number,
      stream: row.stream as string,
      revision: row.revision as number,
      type: row.type as string,
      reason: row.reason as string,
      parkedAtMs: row.parked_at as number,
    }));
  }

  countParked(): number {
    return this.#statements.countParked.get()?.count as number;
  }

  /** Returns what was parked. */
  apply(changes: readonly ViewChange[]): ParkedTransactionEvent[] {
    const parked: ParkedTransactionEvent[] = [];
    for (const change of changes) {
      const reason = 'parkReason' in change ? change.parkReason : this.#applyOne(change.change);
      if (reason === undefined) continue;
      const { position, stream, type } = change;
      const revision = 'parkReason' in change ? change.revision : change.change.revision;
      const event = { position, stream, revision, type, reason, parkedAtMs: this.#clock.now() };
      this.#statements.park.run(position, stream, revision, type, reason, event.parkedAtMs);
      parked.push(event);
    }
    return parked;
  }

  retry(changes: readonly ViewChange[]): void {
    for (const change of changes) this.#statements.unpark.run(change.position);
    this.apply(changes);
  }

  erase(transactionId: number): void {
    this.#statements.erase.run(transactionId, ERASED_REVISION);
    this.#statements.unparkStream.run(transactionStream(transactionId));
  }

  replace(transactionId: number, changes: readonly ViewChange[]): void {
    this.#statements.forget.run(transactionId);
    this.#statements.unparkStream.run(transactionStream(transactionId));
    this.apply(changes);
  }

  /** Why the change can't follow those before it; `undefined` where it was applied or is stale. */
  #applyOne(change: TransactionChange): string | undefined {
    if (change.kind === 'show' && this.#insert(change)) return undefined;
    const id = idOfChange(change);
    const verdict = transition(this.#stateOf(id), change);
    if (typeof verdict === 'object') return verdict.illegal;
    if (verdict === 'stale') return undefined;
    if (change.kind === 'hide') this.#statements.hide.run(id, change.accountId, change.revision);
    if (change.kind === 'erase') this.#statements.erase.run(id, ERASED_REVISION);
    return undefined;
  }

  #insert(effect: Extract<TransactionChange, { kind: 'show' }>): boolean {
    const row = effect.row;
    const { changes } = this.#statements.insert.run(
      row.id,
      row.accountId,
      effect.revision,
      statusCode(row.status),
      row.createdAtMs,
      row.corporateId,
      row.corporateGroupId,
      row.head,
      row.mobileNumber,
      row.fees,
      row.pump,
      row.odometer,
    );
    return changes === 1;
  }

  #stateOf(id: number): RowState | undefined {
    const row = this.#statements.row.get(id);
    if (row === undefined) return undefined;
    return {
      revision: row.revision as number,
      accountId: row.accountId as number,
      shown: row.status === null ? null : toRow(row),
    };
  }
}

function prepareStatements(db: Database) {
  const emptied = `status = NULL, created_at = NULL, corporate_id = NULL, corporate_group_id = NULL,
    head = NULL, mobile_number = NULL, fees = NULL, pump = NULL, odometer = NULL`;
  return {
    insert: db.prepare(
      'INSERT INTO transactions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
    ),
    hide: db.prepare(
      `INSERT INTO transactions (id, account_id, revision) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, ${emptied}`,
    ),
    erase: db.prepare(
      `INSERT INTO transactions (id, account_id, revision) VALUES (?, 0, ?)
       ON CONFLICT (id) DO UPDATE SET account_id = 0, revision = excluded.revision, ${emptied}`,
    ),
    row: db.prepare(`SELECT ${ROW_COLUMNS} FROM transactions WHERE id = ?`),
    park: db.prepare('INSERT OR REPLACE INTO parked VALUES (?, ?, ?, ?, ?, ?)'),
    forget: db.prepare('DELETE FROM transactions WHERE id = ?'),
    unpark: db.prepare('DELETE FROM parked WHERE position = ?'),
    unparkStream: db.prepare('DELETE FROM parked WHERE stream = ?'),
    parked: db.prepare('SELECT * FROM parked WHERE position > ? ORDER BY position LIMIT ?'),
    countParked: db.prepare('SELECT count(*) AS count FROM parked'),
  };
}
