import { RENDERING_VERSION, type TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../base/clock.ts';
import { FuelError } from '../../../base/errors.ts';
import type { Position } from '../../../event-store/event-store.ts';
import type { ViewChange } from '../../../pull/record/project-event.ts';
import type { ViewRows } from '../../../pull/view/bulk-reads.ts';
import {
  type BuildCheckpoint,
  type Checkpoint,
  isComplete,
  type ParkedTransactionEvent,
} from '../../../pull/view/checkpoint.ts';
import type { PageQuery, ViewPage } from '../../../pull/view/transactions-view.ts';
import { Database } from '../driver/database.ts';
import { SqliteBulkReads } from './bulk-reads.ts';
import { PageReader } from './page.ts';
import { Rows } from './rows.ts';
import { CREATE_INDEXES, DROP_INDEXES, MIGRATIONS } from './schema.ts';

/** For the inner pages of the indexes and the leaves in use. */
const CACHE_MIB = 8;

/** One file: the view that is served, one that is built beside it, or one that is retired because another is served. */
export class SqliteGeneration implements ViewRows {
  readonly rows: Rows;
  readonly bulk: SqliteBulkReads;
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #statements: ReturnType<typeof prepareStatements>;
  /** Opened with the first page: a view that is being built has no indexes yet. */
  #pages: PageReader | undefined;

  constructor(path: string, { clock, mustExist }: { readonly clock: Clock; readonly mustExist: boolean }) {
    const options = { migrations: MIGRATIONS, durability: 'normal', cacheMiB: CACHE_MIB, mustExist } as const;
    this.#db = new Database(path, options);
    this.rows = new Rows(this.#db, clock);
    this.bulk = new SqliteBulkReads(this.#db);
    this.#clock = clock;
    this.#statements = prepareStatements(this.#db);
  }

  get path(): string {
    return this.#db.path;
  }

  isRetired(): boolean {
    this.#db.assertOpen();
    return this.#statements.checkpoint.get()?.retired === 1;
  }

  page(query: PageQuery): ViewPage {
    return this.#db.read(() => {
      const checkpoint = this.read();
      if (checkpoint === undefined || !isComplete(checkpoint)) {
        throw new FuelError('STORE_UNAVAILABLE', 'the transactions view is being built');
      }
      this.#pages ??= new PageReader(this.#db);
      return this.#pages.read(query);
    });
  }

  /** The checkpoint of the file, retired or not. */
  read(): BuildCheckpoint | undefined {
    const row = this.#statements.checkpoint.get();
    if (row === undefined) return undefined;
    return {
      storeId: row.store_id as string,
      position: row.position as number,
      servesFrom: row.serves_from as number,
      generation: row.generation as number,
      rendering: row.rendering as number,
      since: {
        atMs: row.since_at as number,
        position: row.since_position as number,
        events: row.since_events as number,
      },
    };
  }

  async find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined> {
    return this.rows.find(transactionId);
  }

  async rowsAfter(id: number, limit: number): Promise<TransactionRow[]> {
    return this.bulk.rowsAfter(id, limit);
  }

  /** Empties the file. */
  async reset(storeId: string, servesFrom: Position): Promise<Checkpoint> {
    return this.#db.write(() => {
      this.#db.exec('DELETE FROM transactions; DELETE FROM parked; DELETE FROM checkpoint');
      return this.#begin({ storeId, servesFrom, generation: this.nextNumber() });
    });
  }

  /** Makes this empty file a build. */
  beginBuild(place: Pick<Checkpoint, 'storeId' | 'servesFrom' | 'generation'>): void {
    this.#db.writeNow(() => {
      if (place.servesFrom > 0) this.#db.exec(DROP_INDEXES); // recreated when it is complete, which is faster
      this.#begin(place);
    });
  }

  /** Counts what is applied from here on. */
  resume(): BuildCheckpoint {
    this.#db.writeNow(() => this.#statements.resume.run(this.#clock.now()));
    const resumed = this.read();
    if (resumed === undefined) throw new Error(`${this.path} has no checkpoint`);
    return resumed;
  }

  async apply(
    changes: readonly ViewChange[],
    position: Position,
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    const before = this.read();
    if (before === undefined || this.isRetired()) return 'reset';
    if (changes.length === 0 && before.position >= position) return [];
    return this.#db.write(() => {
      const { changes: moved } = this.#statements.move.run(position, changes.length, before.generation);
      if (moved === 0) return 'reset';
      const parked = this.rows.apply(changes);
      if (!isComplete(before) && position >= before.servesFrom) this.#db.exec(CREATE_INDEXES);
      return parked;
    });
  }

  /** Ends the serving of this file, unless it is ahead of `position`. */
  async retire(position: Position): Promise<boolean> {
    return this.#db.write(() => this.#statements.retire.run(position).changes === 1);
  }

  drop(): void {
    this.#db.writeNow(() => this.#statements.drop.run());
  }

  async write<T>(work: () => T): Promise<T> {
    return this.#db.write(work);
  }

  close(): void {
    this.#db.close();
  }

  /** That no generation had before. To be called within a write transaction of the served file. */
  nextNumber(): number {
    return this.#statements.nextNumber.get()?.last as number;
  }

  #begin({ storeId, servesFrom, generation }: Pick<Checkpoint, 'storeId' | 'servesFrom' | 'generation'>) {
    this.#statements.begin.run(RENDERING_VERSION, storeId, servesFrom, generation);
    this.#statements.number.run(generation);
    return { storeId, position: 0, servesFrom, generation, rendering: RENDERING_VERSION };
  }
}

function prepareStatements(db: Database) {
  return {
    checkpoint: db.prepare(
      `SELECT rendering, store_id, position, serves_from, generation, retired, since_at, since_position, since_events
       FROM checkpoint`,
    ),
    begin: db.prepare(
      `INSERT INTO checkpoint (only, rendering, store_id, position, serves_from, generation)
       VALUES (1, ?, ?, 0, ?, ?)`,
    ),
    move: db.prepare(
      `UPDATE checkpoint SET position = max(position, ?), since_events = since_events + ?
       WHERE generation = ? AND retired = 0`,
    ),
    retire: db.prepare('UPDATE checkpoint SET retired = 1 WHERE retired = 0 AND position <= ?'),
    nextNumber: db.prepare('UPDATE generations SET last = last + 1 RETURNING last'),
    number: db.prepare('UPDATE generations SET last = max(last, ?)'),
    drop: db.prepare('UPDATE checkpoint SET retired = 1'),
    resume: db.prepare('UPDATE checkpoint SET since_at = ?, since_position = position, since_events = 0'),
  };
}
