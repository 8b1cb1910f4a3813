import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/** A record as the API shows it, except for its images, which are object keys here. */
export interface TransactionDocument {
  id: number;
  status: string;
  created_at: string;
  corporate: { id: number; name: string };
  corporate_group: { id: number; name: string } | null;
  driver: { id: number; name: string; mobile_number?: string };
  images: { pump: string | null; odometer: string | null };
  [field: string]: unknown;
}

export interface PageFilter {
  accountId: number;
  from: Date;
  to: Date;
  corporateGroupId?: number | undefined;
  corporateIds?: number[] | undefined;
  statuses?: string[] | undefined;
  after?: { createdAt: number; id: number } | undefined;
  limit: number;
}

export class TransactionDatabase {
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#db.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA cache_size = -16384;
      CREATE TABLE IF NOT EXISTS transactions (
        id INTEGER PRIMARY KEY,
        account_id INTEGER NOT NULL,
        status TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        corporate_id INTEGER NOT NULL,
        corporate_group_id INTEGER,
        document TEXT NOT NULL
      );
      CREATE INDEX IF NOT EXISTS by_account ON transactions (account_id, created_at, id);
      CREATE INDEX IF NOT EXISTS by_status ON transactions (account_id, status, created_at, id);
      CREATE INDEX IF NOT EXISTS by_corporate ON transactions (account_id, corporate_id, created_at, id);
      CREATE INDEX IF NOT EXISTS by_group ON transactions (account_id, corporate_group_id, created_at, id);
    `);
    this.#insert = this.#db.prepare('INSERT INTO transactions VALUES (?, ?, ?, ?, ?, ?, ?)');
  }

  insertAll(records: Iterable<{ accountId: number; document: TransactionDocument }>): void {
    this.#db.exec('BEGIN');
    for (const { accountId, document } of records) {
      this.#insert.run(
        document.id,
        accountId,
        document.status,
        Date.parse(document.created_at),
        document.corporate.id,
        document.corporate_group?.id ?? null,
        JSON.stringify(document),
      );
    }
    this.#db.exec('COMMIT; ANALYZE');
  }

  /** Finds one record more than the limit, if there is one, so that the caller knows if another page follows. */
  find(filter: PageFilter): TransactionDocument[] {
    const conditions = ['account_id = ?', 'created_at >= ?', 'created_at <= ?'];
    const values: SQLInputValue[] = [filter.accountId, filter.from.getTime(), filter.to.getTime()];
    if (filter.corporateGroupId !== undefined) {
      conditions.push('corporate_group_id = ?');
      values.push(filter.corporateGroupId);
    }
    if (filter.corporateIds !== undefined) {
      conditions.push(`corporate_id IN (${filter.corporateIds.map(() => '?').join(', ')})`);
      values.push(...filter.corporateIds);
    }
    if (filter.statuses !== undefined) {
      conditions.push(`status IN (${filter.statuses.map(() => '?').join(', ')})`);
      values.push(...filter.statuses);
    }
    if (filter.after !== undefined) {
      conditions.push('(created_at, id) < (?, ?)');
      values.push(filter.after.createdAt, filter.after.id);
    }
    const sql = `SELECT document FROM transactions WHERE ${conditions.join(' AND ')}
      ORDER BY created_at DESC, id DESC LIMIT ?`;
    const rows = this.#prepare(sql).all(...values, filter.limit + 1);
    return rows.map((row) => JSON.parse(row.document as string) as TransactionDocument);
  }

  close(): void {
    this.#db.close();
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
