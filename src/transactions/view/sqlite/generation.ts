import { RENDERING_VERSION, type TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../clock.ts';
import { FuelError } from '../../../errors.ts';
import type { Position } from '../../../event-store/event-store.ts';
import { Database } from '../../../sqlite/database.ts';
import type { ViewChange } from '../../project-event.ts';
import { type Checkpoint, isComplete, type ParkedTransactionEvent } from '../checkpoint.ts';
import type { PageQuery, ViewPage } from '../transactions-view.ts';
import type { Bounds, Resumed, Segment, ViewBuild } from '../view-builds.ts';
import { SqliteBulkReads } from './bulk-reads.ts';
import { PageReader } from './page.ts';
import { Rows } from './rows.ts';
import { CREATE_INDEXES, DROP_INDEXES, MIGRATIONS } from './schema.ts';
import { Segments } from './segments.ts';

/** For the inner pages of the indexes and the leaves in use. */
const CACHE_MIB = 8;

/** One file: the view that is served, one that is built beside it, or one that is retired because another is served. */
export class SqliteGeneration implements ViewBuild {
  readonly rows: Rows;
  readonly bulk: SqliteBulkReads;
  readonly #db: Database;
  readonly #segments: Segments;
  readonly #statements: ReturnType<typeof prepareStatements>;
  /** Opened with the first page: a view that is being built has no indexes yet. */
  #pages: PageReader | undefined;

  constructor(path: string, { clock, mustExist }: { readonly clock: Clock; readonly mustExist: boolean }) {
    const options = { migrations: MIGRATIONS, durability: 'normal', cacheMiB: CACHE_MIB, mustExist } as const;
    this.#db = new Database(path, options);
    this.rows = new Rows(this.#db, clock);
    this.bulk = new SqliteBulkReads(this.#db);
    this.#segments = new Segments(this.#db);
    this.#statements = prepareStatements(this.#db);
  }

  get path(): string {
    return this.#db.path;
  }

  /** Throws before the first `reset`. */
  get generation(): number {
    const checkpoint = this.read();
    if (checkpoint === undefined) throw new Error(`${this.path} has no checkpoint`);
    return checkpoint.generation;
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
  read(): Checkpoint | undefined {
    const row = this.#statements.checkpoint.get();
    if (row === undefined) return undefined;
    return {
      storeId: row.store_id as string,
      position: row.position as number,
      servesFrom: row.serves_from as number,
      generation: row.generation as number,
      rendering: row.rendering as number,
    };
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    return this.isRetired() ? undefined : this.read();
  }

  async find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined> {
    return this.rows.find(transactionId);
  }

  async rowsAfter(id: number, limit: number): Promise<TransactionRow[]> {
    return this.bulk.rowsAfter(id, limit);
  }

  async segments(): Promise<Segment[]> {
    return this.allSegments();
  }

  allSegments(): Segment[] {
    return this.#segments.all();
  }

  async resumed(): Promise<Resumed | undefined> {
    const row = this.#statements.resumed.get();
    if (row === undefined) return undefined;
    return { atMs: row.at as number, covered: row.covered as number, events: row.events as number };
  }

  /** Empties the file. */
  async reset(storeId: string, servesFrom: Position): Promise<Checkpoint> {
    return this.#db.write(() => {
      this.#db.exec('DELETE FROM transactions; DELETE FROM parked; DELETE FROM checkpoint');
      this.#segments.clear();
      return this.#begin({ storeId, servesFrom, generation: this.#nextNumber() });
    });
  }

  /**
   * Calls `start` within the write lock of this file, with a number that no generation had before. `undefined` where
   * another file is served by then.
   */
  async startBuild<T>(start: (served: this, generation: number) => T): Promise<T | undefined> {
    return this.write(() => (this.isRetired() ? undefined : start(this, this.#nextNumber())));
  }

  /** Makes this empty file a build. */
  beginBuild(options: {
    readonly storeId: string;
    readonly servesFrom: Position;
    readonly generation: number;
    readonly bounds: readonly Bounds[];
  }): void {
    this.#db.writeNow(() => {
      this.#db.exec(DROP_INDEXES);
      this.#begin(options);
      this.#segments.plan(options.bounds);
    });
  }

  async applyTo(
    generation: number,
    changes: readonly ViewChange[],
    position: Position,
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    const before = await this.checkpoint();
    if (before?.generation !== generation) return 'reset';
    if (changes.length === 0 && before.position >= position) return [];
    return this.#db.write(() => {
      const { changes: moved } = this.#statements.move.run(position, generation);
      return moved === 0 ? 'reset' : this.rows.apply(changes);
    });
  }

  async apply(
    changes: readonly ViewChange[],
    position: Position,
  ): Promise<readonly ParkedTransactionEvent[]> {
    const parked = await this.applyTo(this.generation, changes, position);
    if (parked === 'reset') throw dropped();
    return parked;
  }

  async applySegment(
    changes: readonly ViewChange[],
    to: { readonly upTo: Position; readonly position: Position; readonly events: number },
  ): Promise<readonly ParkedTransactionEvent[]> {
    return this.#inUse(() => {
      if (!this.#segments.move(to)) throw new Error(`${this.path} has no segment up to ${to.upTo}`);
      return this.rows.apply(changes);
    });
  }

  async plan(bounds: readonly Bounds[]): Promise<void> {
    await this.#inUse(() => this.#segments.plan(bounds));
  }

  async noteBound(position: Position): Promise<void> {
    await this.#inUse(() => this.#segments.noteBound(position));
  }

  async resume({ atMs, covered, events }: Resumed): Promise<void> {
    await this.#inUse(() => this.#statements.resume.run(atMs, covered, events));
  }

  async finish(): Promise<void> {
    await this.#inUse(() => {
      this.#db.exec(CREATE_INDEXES);
      this.#statements.move.run(this.#segments.all().at(-1)?.upTo ?? 0, this.generation);
    });
  }

  /** Ends the serving of this file, unless it is ahead of `position`. */
  async retire(position: Position): Promise<boolean> {
    return this.#db.write(() => this.#statements.retire.run(position).changes === 1);
  }

  drop(): void {
    this.#db.writeNow(() => this.#statements.drop.run());
  }

  /** A write to a file that is in use. */
  async #inUse<T>(work: () => T): Promise<T> {
    return this.write(() => {
      if (this.isRetired()) throw dropped();
      return work();
    });
  }

  async write<T>(work: () => T): Promise<T> {
    return this.#db.write(work);
  }

  close(): void {
    this.#db.close();
  }

  #nextNumber(): number {
    return this.#statements.nextNumber.get()?.last as number;
  }

  #begin(place: { readonly storeId: string; readonly servesFrom: Position; readonly generation: number }) {
    const { storeId, servesFrom, generation } = place;
    this.#statements.begin.run(RENDERING_VERSION, storeId, servesFrom, generation);
    this.#statements.number.run(generation);
    return { storeId, position: 0, servesFrom, generation, rendering: RENDERING_VERSION };
  }
}

function prepareStatements(db: Database) {
  return {
    checkpoint: db.prepare(
      'SELECT rendering, store_id, position, serves_from, generation, retired FROM checkpoint',
    ),
    begin: db.prepare('INSERT INTO checkpoint VALUES (1, ?, ?, 0, ?, ?, 0)'),
    move: db.prepare(
      'UPDATE checkpoint SET position = max(position, ?) WHERE generation = ? AND retired = 0',
    ),
    retire: db.prepare('UPDATE checkpoint SET retired = 1 WHERE retired = 0 AND position <= ?'),
    nextNumber: db.prepare('UPDATE generations SET last = last + 1 RETURNING last'),
    number: db.prepare('UPDATE generations SET last = max(last, ?)'),
    drop: db.prepare('UPDATE checkpoint SET retired = 1'),
    resumed: db.prepare('SELECT at, covered, events FROM resumed'),
    resume: db.prepare('INSERT OR REPLACE INTO resumed VALUES (1, ?, ?, ?)'),
  };
}

function dropped(): FuelError {
  return new FuelError(
    'REFUSED',
    'the view that was being built was dropped, or another one is served by now',
  );
}
