import type { StatementSync } from 'node:sqlite';
import type { TransactionRow } from '../../../../projections/transactions.ts';
import type { BulkReads, StoredRow } from '../../../pull/view/bulk-reads.ts';
import type { Database } from '../driver/database.ts';
import { ROW_COLUMNS, rowOfValues } from './row-values.ts';

/** By the ids in the table itself: no index holds whole rows. */
export class SqliteBulkReads implements BulkReads {
  readonly #db: Database;
  readonly #many: StatementSync;
  readonly #rowsAfter: StatementSync;
  readonly #idsAfter: StatementSync;

  constructor(db: Database) {
    const next = 'FROM transactions NOT INDEXED WHERE id > ? AND status IS NOT NULL ORDER BY id LIMIT ?';
    this.#db = db;
    this.#many = db.prepare(
      `SELECT ${ROW_COLUMNS} FROM transactions NOT INDEXED WHERE id IN (SELECT value FROM json_each(?))`,
    );
    this.#rowsAfter = db.prepare(`SELECT ${ROW_COLUMNS} ${next}`);
    this.#idsAfter = db.prepare(`SELECT id ${next}`);
    // A row costs half as much as an array of its values.
    for (const statement of [this.#many, this.#rowsAfter, this.#idsAfter]) statement.setReturnArrays(true);
  }

  async findMany(transactionIds: readonly number[]): Promise<ReadonlyMap<number, StoredRow>> {
    this.#db.assertOpen();
    const found = new Map<number, StoredRow>();
    for (const values of arrays(this.#many.all(JSON.stringify(transactionIds)))) {
      const row = rowOfValues(values);
      found.set(values[0] as number, { revision: values[2] as number, row: row ?? 'hidden' });
    }
    return found;
  }

  async rowsAfter(afterId: number, limit: number): Promise<TransactionRow[]> {
    this.#db.assertOpen();
    return arrays(this.#rowsAfter.all(afterId, limit)).flatMap((values) => rowOfValues(values) ?? []);
  }

  async idsAfter(afterId: number, limit: number): Promise<number[]> {
    this.#db.assertOpen();
    return arrays(this.#idsAfter.all(afterId, limit)).map(([id]) => id as number);
  }
}

function arrays(rows: unknown): readonly (readonly unknown[])[] {
  return rows as readonly (readonly unknown[])[];
}
