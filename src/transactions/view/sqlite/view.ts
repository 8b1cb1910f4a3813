import {
  idOfChange,
  RENDERING_VERSION,
  type RowState,
  type TransactionChange,
  type TransactionRow,
  transition,
} from '../../../../projections/transactions.ts';
import type { Clock } from '../../../clock.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { FuelError } from '../../../errors.ts';
import { ERASED_REVISION } from '../../../event-store/event-store.ts';
import { Database } from '../../../sqlite/database.ts';
import type { ViewChange } from '../../project-event.ts';
import type {
  Checkpoint,
  PageQuery,
  ParkedTransactionEvent,
  TransactionsView,
  ViewPage,
} from '../transactions-view.ts';
import { SqliteBulkReads } from './bulk-reads.ts';
import { PageReader } from './page.ts';
import { ROW_COLUMNS, statusCode, toRow } from './rows.ts';

/**
 * One row for each transaction; a tombstone is a row whose `status` is null. Each index fits one combination of filters
 * and contains all that finding a page needs, so that only the rows shown are read.
 */
export const MIGRATIONS = [
  `CREATE TABLE checkpoint (
     only INTEGER PRIMARY KEY CHECK (only = 1), rendering INTEGER NOT NULL, store_id TEXT NOT NULL,
     position INTEGER NOT NULL, serves_from INTEGER NOT NULL, generation INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE parked (
     position INTEGER PRIMARY KEY, stream TEXT NOT NULL, revision INTEGER NOT NULL, type TEXT NOT NULL,
     reason TEXT NOT NULL, parked_at INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE transactions (
     id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL, revision INTEGER NOT NULL, status INTEGER,
     created_at INTEGER, corporate_id INTEGER, corporate_group_id INTEGER,
     head TEXT, mobile_number TEXT, fees TEXT, pump TEXT, odometer TEXT
   ) STRICT;
   CREATE INDEX by_account ON transactions (account_id, status, created_at, id) WHERE status IS NOT NULL;
   CREATE INDEX by_corporate ON transactions (account_id, corporate_id, status, created_at, id)
     WHERE status IS NOT NULL;
   CREATE INDEX by_group ON transactions (account_id, corporate_group_id, status, created_at, id)
     WHERE status IS NOT NULL AND corporate_group_id IS NOT NULL;
   CREATE INDEX by_group_and_corporate
     ON transactions (account_id, corporate_group_id, corporate_id, status, created_at, id)
     WHERE status IS NOT NULL AND corporate_group_id IS NOT NULL;`,
  // To find parked events by their stream, and to count them: it is a tenth of the table's size.
  'CREATE INDEX parked_by_stream ON parked (stream)',
];

/** For the inner pages of the indexes and the leaves in use. */
const CACHE_MIB = 8;

/** The transactions view in an SQLite file. Everything runs on the calling thread. */
export function openSqliteView(options: {
  readonly path: string;
  readonly clock: Clock;
}): SqliteTransactionsView {
  return new SqliteTransactionsView(options.path, options.clock);
}

export class SqliteTransactionsView implements TransactionsView {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #pages: PageReader;
  readonly #bulk: SqliteBulkReads;
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(path: string, clock: Clock) {
    this.#db = new Database(path, { migrations: MIGRATIONS, durability: 'normal', cacheMiB: CACHE_MIB });
    this.#clock = clock;
    this.#statements = prepareStatements(this.#db);
    this.#pages = new PageReader(this.#db);
    this.#bulk = new SqliteBulkReads(this.#db);
  }

  async page(query: PageQuery): Promise<ViewPage> {
    return this.#db.read(() => {
      const checkpoint = this.#checkpoint();
      if (checkpoint === undefined || checkpoint.position < checkpoint.servesFrom) {
        throw new FuelError('STORE_UNAVAILABLE', 'the transactions view is being built');
      }
      return this.#pages.read(query);
    });
  }

  async find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined> {
    this.#db.assertOpen();
    const row = this.#statements.row.get(transactionId);
    if (row === undefined) return undefined;
    return row.status === null ? 'hidden' : toRow(row);
  }

  findMany(transactionIds: readonly number[]): Promise<ReadonlyMap<number, TransactionRow | 'hidden'>> {
    return this.#bulk.findMany(transactionIds);
  }

  rowsAfter(afterId: number, limit: number): Promise<TransactionRow[]> {
    return this.#bulk.rowsAfter(afterId, limit);
  }

  idsAfter(afterId: number, limit: number): Promise<number[]> {
    return this.#bulk.idsAfter(afterId, limit);
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    this.#db.assertOpen();
    return this.#checkpoint();
  }

  async reset(storeId: string, servesFrom: number): Promise<Checkpoint> {
    return this.#db.write(() => {
      const generation = 1 + ((this.#statements.checkpoint.get()?.generation as number | undefined) ?? 0);
      this.#db.exec('DELETE FROM transactions; DELETE FROM parked; DELETE FROM checkpoint');
      this.#statements.insertCheckpoint.run(RENDERING_VERSION, storeId, servesFrom, generation);
      return { storeId, position: 0, servesFrom, generation };
    });
  }

  async apply(
    changes: readonly ViewChange[],
    to: { readonly generation: number; readonly position: number },
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    this.#db.assertOpen();
    const before = this.#checkpoint();
    if (before?.generation !== to.generation) return 'reset';
    if (changes.length === 0 && before.position >= to.position) return [];
    return this.#db.write(() => {
      const { changes: moved } = this.#statements.moveCheckpoint.run(to.position, to.generation);
      return moved === 0 ? 'reset' : this.#applyAll(changes);
    });
  }

  async parked(): Promise<ParkedTransactionEvent[]> {
    this.#db.assertOpen();
    return this.#statements.parked.all().map((row) => ({
      position: row.position as number,
      stream: row.stream as string,
      revision: row.revision as number,
      type: row.type as string,
      reason: row.reason as string,
      parkedAtMs: row.parked_at as number,
    }));
  }

  async countParked(): Promise<number> {
    this.#db.assertOpen();
    return this.#statements.countParked.get()?.count as number;
  }

  async retry(changes: readonly ViewChange[]): Promise<void> {
    await this.#db.write(() => {
      for (const change of changes) this.#statements.unpark.run(change.position);
      this.#applyAll(changes);
    });
  }

  async erase(transactionId: number): Promise<void> {
    await this.#db.write(() => {
      this.#statements.erase.run(transactionId, ERASED_REVISION);
      this.#statements.unparkStream.run(transactionStream(transactionId));
    });
  }

  async replace(transactionId: number, changes: readonly ViewChange[]): Promise<void> {
    await this.#db.write(() => {
      this.#statements.forget.run(transactionId);
      this.#statements.unparkStream.run(transactionStream(transactionId));
      this.#applyAll(changes);
    });
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #checkpoint(): Checkpoint | undefined {
    const row = this.#statements.checkpoint.get();
    if (row === undefined || row.rendering !== RENDERING_VERSION) return undefined;
    return {
      storeId: row.store_id as string,
      position: row.position as number,
      servesFrom: row.serves_from as number,
      generation: row.generation as number,
    };
  }

  /** Returns what was parked. */
  #applyAll(changes: readonly ViewChange[]): ParkedTransactionEvent[] {
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
    checkpoint: db.prepare('SELECT rendering, store_id, position, serves_from, generation FROM checkpoint'),
    insertCheckpoint: db.prepare('INSERT INTO checkpoint VALUES (1, ?, ?, 0, ?, ?)'),
    moveCheckpoint: db.prepare('UPDATE checkpoint SET position = max(position, ?) WHERE generation = ?'),
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
    parked: db.prepare('SELECT * FROM parked ORDER BY position'),
    countParked: db.prepare('SELECT count(*) AS count FROM parked'),
  };
}
