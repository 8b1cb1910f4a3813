import type { StatementSync } from 'node:sqlite';
import type { RowState, TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../base/clock.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import type { Anchor } from '../../../event-store/store-identity.ts';
import type { ViewChange } from '../../../pull/record/project-event.ts';
import {
  assertServable,
  type BuildCheckpoint,
  type Checkpoint,
  firstCheckpoint,
  isComplete,
  newerAnchor,
  type ParkedTransactionEvent,
} from '../../../pull/view/checkpoint.ts';
import type { AppliedTo, PageQuery, ViewPage } from '../../../pull/view/transactions-view.ts';
import { foldHistory, freshState, groupChanges } from '../../stored/fold-changes.ts';
import { Database } from '../driver/database.ts';
import { PageReader } from './page.ts';
import { ROW_COLUMNS, type RowValues, stateOf, valuesOf } from './row-values.ts';
import { CREATE_INDEXES, DROP_INDEXES, MIGRATIONS } from './schema.ts';

/** For the inner pages of the indexes and the leaves in use. */
const CACHE_MIB = 8;

/** One file: the view that is served, one that is built beside it, or one that is retired because another is served. */
export class SqliteGeneration {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #statements: ReturnType<typeof prepareStatements>;
  /** Opened with the first page: a view that is being built has no indexes yet. */
  #pages: PageReader | undefined;

  constructor(path: string, { clock, mustExist }: { readonly clock: Clock; readonly mustExist: boolean }) {
    const options = { migrations: MIGRATIONS, durability: 'normal', cacheMiB: CACHE_MIB, mustExist } as const;
    this.#db = new Database(path, options);
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
      assertServable(this.checkpoint());
      this.#pages ??= new PageReader(this.#db);
      return this.#pages.read(query);
    });
  }

  /** Of the file, retired or not. */
  checkpoint(): BuildCheckpoint | undefined {
    const row = this.#statements.checkpoint.get();
    if (row === undefined) return undefined;
    return {
      storeId: row.store_id as string,
      position: row.position as number,
      servesFrom: row.serves_from as number,
      anchor: row.anchor === null ? undefined : (JSON.parse(row.anchor as string) as Anchor),
      generation: row.generation as number,
      rendering: row.rendering as number,
      since: {
        atMs: row.since_at as number,
        position: row.since_position as number,
        events: row.since_events as number,
      },
    };
  }

  find(transactionIds: readonly number[]): Map<number, RowState> {
    const found = this.#statements.rows.all(JSON.stringify(transactionIds));
    return new Map((found as unknown as RowValues[]).map((values) => [values[0], stateOf(values)]));
  }

  rowsAfter(afterId: number, limit: number): TransactionRow[] {
    const found = this.#statements.rowsAfter.all(afterId, limit);
    return (found as unknown as RowValues[]).flatMap((values) => stateOf(values).shown ?? []);
  }

  idsAfter(afterId: number, limit: number): number[] {
    return (this.#statements.idsAfter.all(afterId, limit) as unknown as [number][]).map(([id]) => id);
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
    const resumed = this.checkpoint();
    if (resumed === undefined) throw new Error(`${this.path} has no checkpoint`);
    return resumed;
  }

  async apply(
    changes: readonly ViewChange[],
    { position, anchor }: AppliedTo,
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    const before = this.checkpoint();
    if (before === undefined || this.isRetired()) return 'reset';
    if (changes.length === 0 && before.position >= position) return [];
    return this.#db.write(() => {
      const newest = newerAnchor(before.anchor, anchor);
      const { changes: moved } = this.#statements.move.run(
        position,
        newest === undefined ? null : JSON.stringify(newest),
        changes.length,
        before.generation,
      );
      if (moved === 0) return 'reset';
      const parked = this.#apply(changes);
      if (!isComplete(before) && position >= before.servesFrom) this.#db.exec(CREATE_INDEXES);
      return parked;
    });
  }

  async retry(changes: readonly ViewChange[]): Promise<void> {
    await this.#db.write(() => {
      for (const { position } of changes) this.#statements.unpark.run(position);
      this.#apply(changes);
    });
  }

  async replace(transactionId: number, changes: readonly ViewChange[]): Promise<void> {
    await this.#db.write(() => {
      this.#statements.forget.run(transactionId);
      this.#statements.unparkStream.run(transactionStream(transactionId));
      this.#apply(changes);
    });
  }

  /** Ends the serving of this file, unless it is ahead of `position`. */
  async retire(position: Position): Promise<boolean> {
    return this.#db.write(() => this.#statements.retire.run(position).changes === 1);
  }

  drop(): void {
    this.#db.writeNow(() => this.#statements.retire.run(Number.MAX_SAFE_INTEGER));
  }

  /** Runs `work` while no other process can retire this file. */
  async whileLocked<T>(work: () => T): Promise<T> {
    return this.#db.write(work);
  }

  close(): void {
    this.#db.close();
  }

  /** That no generation had before. To be called within a write transaction of the served file. */
  nextNumber(): number {
    return this.#statements.nextNumber.get()?.last as number;
  }

  #begin(place: Pick<Checkpoint, 'storeId' | 'servesFrom' | 'generation'>): Checkpoint {
    const first = firstCheckpoint(place);
    const { rendering, storeId, servesFrom, generation } = first;
    this.#statements.begin.run(rendering, storeId, servesFrom, generation);
    this.#statements.number.run(generation);
    return first;
  }

  /** Returns what was parked. */
  #apply(changes: readonly ViewChange[]): ParkedTransactionEvent[] {
    const atMs = this.#clock.now();
    const { histories, unreadable: parked } = groupChanges(changes, atMs);
    for (const [id, history] of histories) {
      const fresh = freshState(history);
      if (fresh !== undefined && this.#write(this.#statements.insert, id, fresh)) continue;
      const { state, parked: illegal } = foldHistory(this.find([id]).get(id), history, atMs);
      if (state !== undefined) this.#write(this.#statements.put, id, state);
      for (const event of illegal) parked.push(event);
    }
    for (const { position, stream, revision, type, reason, parkedAtMs } of parked) {
      this.#statements.park.run(position, stream, revision, type, reason, parkedAtMs);
    }
    return parked.sort((a, b) => a.position - b.position);
  }

  /** False where the statement found a row that it leaves alone. */
  #write(statement: StatementSync, id: number, state: RowState): boolean {
    return statement.run(...valuesOf(id, state)).changes === 1;
  }
}

function prepareStatements(db: Database) {
  const columns = ROW_COLUMNS.join(', ');
  const insert = `INTO transactions (${columns}) VALUES (${ROW_COLUMNS.map(() => '?').join(', ')})`;
  // By the ids in the table itself: no index holds whole rows.
  const visible = 'FROM transactions NOT INDEXED WHERE id > ? AND status IS NOT NULL ORDER BY id LIMIT ?';
  const values = (sql: string): StatementSync => {
    const statement = db.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  };
  return {
    rows: values(
      `SELECT ${columns} FROM transactions NOT INDEXED WHERE id IN (SELECT value FROM json_each(?))`,
    ),
    rowsAfter: values(`SELECT ${columns} ${visible}`),
    idsAfter: values(`SELECT id ${visible}`),
    insert: db.prepare(`INSERT ${insert} ON CONFLICT (id) DO NOTHING`),
    put: db.prepare(`INSERT OR REPLACE ${insert}`),
    forget: db.prepare('DELETE FROM transactions WHERE id = ?'),
    park: db.prepare('INSERT OR REPLACE INTO parked VALUES (?, ?, ?, ?, ?, ?)'),
    unpark: db.prepare('DELETE FROM parked WHERE position = ?'),
    unparkStream: db.prepare('DELETE FROM parked WHERE stream = ?'),
    parked: db.prepare('SELECT * FROM parked WHERE position > ? ORDER BY position LIMIT ?'),
    countParked: db.prepare('SELECT count(*) AS count FROM parked'),
    checkpoint: db.prepare('SELECT * FROM checkpoint'),
    begin: db.prepare(
      `INSERT INTO checkpoint (only, rendering, store_id, position, serves_from, generation)
       VALUES (1, ?, ?, 0, ?, ?)`,
    ),
    move: db.prepare(
      `UPDATE checkpoint SET position = max(position, ?), anchor = ?, since_events = since_events + ?
       WHERE generation = ? AND retired = 0`,
    ),
    retire: db.prepare('UPDATE checkpoint SET retired = 1 WHERE retired = 0 AND position <= ?'),
    resume: db.prepare('UPDATE checkpoint SET since_at = ?, since_position = position, since_events = 0'),
    nextNumber: db.prepare('UPDATE generations SET last = last + 1 RETURNING last'),
    number: db.prepare('UPDATE generations SET last = max(last, ?)'),
  };
}
