import type { StatementSync } from 'node:sqlite';
import type { Clock } from '../../../base/clock.ts';
import { Signal } from '../../../base/signal.ts';
import { world } from '../../../base/world.ts';
import type {
  Append,
  AppendResult,
  BackwardsBatch,
  Damage,
  DamageSearch,
  EventStore,
  StreamRange,
  SubscribeOptions,
  SubscriptionBatch,
} from '../../../event-store/event-store.ts';
import { repeatingJson } from '../../../event-store/new-event.ts';
import type { Position, RecordedEvent } from '../../../event-store/recorded-event.ts';
import type { ChangeSignal } from '../../../tables/tables.ts';
import { CommitWatch } from '../driver/commit-watch.ts';
import { Database } from '../driver/database.ts';
import { isRepeated } from '../driver/errors.ts';
import { type EventRow, EventRows } from './event-rows.ts';
import { type EventText, textsOf } from './event-text.ts';
import { findDamage } from './find-damage.ts';
import { type ReadAllOptions, type ReadBackwardsOptions, SqliteLogReader } from './log-reader.ts';
import { rewriteStream } from './rewrite-stream.ts';
import { EVENT_MIGRATIONS } from './schema.ts';

const HEARTBEAT_MS = 1_000;
const BATCH_SIZE = 500;

/** Opens the embedded event store; creates the file where it is missing. Several processes may share it. */
export function openSqliteEventStore({
  path,
  clock,
}: {
  readonly path: string;
  readonly clock: Clock;
}): SqliteEventStore {
  const db = new Database(path, { migrations: EVENT_MIGRATIONS, durability: 'full' });
  return new SqliteEventStore({ db, clock, commits: new CommitWatch(db) });
}

export interface SqliteEventStoreParts {
  readonly db: Database;
  readonly clock: Clock;
  /** Notifies when an event may have been recorded, by this process or another. It is closed with the store. */
  readonly commits: ChangeSignal & { close(): void };
}

/** The event store on one SQLite file, or on one in memory. A commit to a file survives a power cut. */
export class SqliteEventStore implements EventStore {
  readonly commits: SqliteEventStoreParts['commits'];
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #rows: EventRows;
  readonly #reader: SqliteLogReader;
  readonly #lastRevision: StatementSync;
  readonly #findErased: StatementSync;
  readonly #hasErased: StatementSync;
  readonly #insert: StatementSync;
  readonly #readIds: StatementSync;
  readonly #findId: StatementSync;

  constructor({ db, clock, commits }: SqliteEventStoreParts) {
    this.#db = db;
    this.commits = commits;
    this.#clock = clock;
    this.#rows = new EventRows(db);
    this.#reader = new SqliteLogReader(db, this.#rows);
    this.#lastRevision = db.prepare(
      'SELECT revision FROM events WHERE stream = ? ORDER BY revision DESC LIMIT 1',
    );
    this.#insert = db.prepare(
      `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata)
       VALUES (?, ?, ?, ?, ?, CAST(? AS TEXT), ?)`,
    );
    this.#hasErased = db.prepare('SELECT 1 FROM erased_streams LIMIT 1');
    this.#findErased = db.prepare('SELECT 1 FROM erased_streams WHERE stream = ?');
    this.#readIds = db.prepare(
      'SELECT id, revision, position FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?',
    );
    this.#findId = db.prepare(
      `SELECT min(revision) AS revision FROM events
       WHERE stream = ? AND id IN (SELECT value FROM json_each(?))`,
    );
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    const toText = textsOf(repeatingJson());
    const prepared = appends.map(({ events, ...target }) => ({ ...target, events: events.map(toText) }));
    if (prepared.some(({ events }) => events.length === 0)) {
      throw new RangeError('an append needs at least one event');
    }
    const results = await this.#db.write(() => {
      const nowMs = this.#clock.now();
      const hasErased = this.#hasErased.get() !== undefined; // most logs have none, and need not be asked for each stream
      return prepared.map((append): AppendResult => {
        if (hasErased && this.#isErased(append.stream)) return { kind: 'erased' };
        return this.#appendOne(append, nowMs);
      });
    });
    this.commits.notify();
    return results;
  }

  async readStream(stream: string, range?: StreamRange): Promise<RecordedEvent[]> {
    this.#db.assertOpen();
    return this.#db.read(() => this.#rows.ofStream(stream, range));
  }

  async readLast(stream: string): Promise<RecordedEvent | undefined> {
    this.#db.assertOpen();
    const last = this.#lastRevision.get(stream) as { readonly revision: number } | undefined;
    return last && (await this.readStream(stream, { fromRevision: last.revision }))[0];
  }

  async readStreams(streams: readonly string[]): Promise<RecordedEvent[][]> {
    return this.#db.read(() => streams.map((stream) => this.#rows.ofStream(stream)));
  }

  async isErased(stream: string): Promise<boolean> {
    this.#db.assertOpen();
    return this.#isErased(stream);
  }

  /** The names of all erased streams. */
  async erasedStreams(): Promise<readonly string[]> {
    const rows = this.#db.prepare('SELECT stream FROM erased_streams ORDER BY stream').all();
    return rows.map((row) => row.stream as string);
  }

  async *subscribe(options: SubscribeOptions): AsyncGenerator<SubscriptionBatch, void, undefined> {
    const { prefixes, signal, unparsed, batchSize: limit = BATCH_SIZE } = options;
    const changed = new Signal();
    const notify = (): void => changed.notify();
    signal.addEventListener('abort', notify);
    try {
      if (!signal.aborted) this.commits.add(changed);
      let position = options.after;
      let yieldedAtMs = Number.NEGATIVE_INFINITY; // so that the first batch comes at once, even an empty one
      while (!signal.aborted) {
        changed.reset();
        const batch = this.readAll({ prefixes, after: position, limit, unparsed });
        if (batch.position > position || world.elapsedMs() - yieldedAtMs >= HEARTBEAT_MS) {
          position = batch.position;
          yield batch;
          yieldedAtMs = world.elapsedMs();
        }
        if (signal.aborted) return;
        if (batch.caughtUp) await changed.wait(Math.max(0, yieldedAtMs + HEARTBEAT_MS - world.elapsedMs()));
        else await world.nextTurn(); // reading is synchronous: give the event loop a turn between two batches
      }
    } finally {
      signal.removeEventListener('abort', notify);
      this.commits.remove(changed);
    }
  }

  /** One step of a subscription, read on the calling thread. */
  readAll(options: ReadAllOptions): SubscriptionBatch {
    this.#db.assertOpen();
    return this.#reader.readAll(options);
  }

  async readBackwards(options: ReadBackwardsOptions): Promise<BackwardsBatch> {
    this.#db.assertOpen();
    const batch = this.#reader.readBackwards(options);
    await world.nextTurn(); // as in `subscribe`: a caller takes step after step
    return batch;
  }

  /** The events at these positions, read on the calling thread; those that were erased are left out. */
  readAt(positions: readonly Position[]): RecordedEvent[] {
    return this.#db.read(() => positions.flatMap((position) => this.#rows.at(position) ?? []));
  }

  /** As `EventRows.batchAt`, read on the calling thread. */
  batchAt(positions: readonly Position[]): ReadonlyMap<Position, RecordedEvent | undefined> {
    return this.#db.read(() => this.#rows.batchAt(positions));
  }

  async head(): Promise<Position> {
    return this.end();
  }

  async hasReached(position: Position): Promise<boolean> {
    return position <= this.end();
  }

  findDamage({ rest = () => world.nextTurn(), ...search }: DamageSearch = {}): Promise<readonly Damage[]> {
    return findDamage(this.#db, this.#rows, { ...search, rest, upTo: this.end() });
  }

  /** As `head`, read on the calling thread. */
  end(): Position {
    this.#db.assertOpen();
    return this.#reader.head();
  }

  async rewrite(events: readonly RecordedEvent[]): Promise<boolean> {
    const isDone = await rewriteStream(this.#db, events);
    this.#cutLog();
    return isDone;
  }

  async erase(stream: string): Promise<void> {
    await this.#db.write(() => {
      this.#db
        .prepare('INSERT INTO erased_streams (stream, erased_at) VALUES (?, ?) ON CONFLICT DO NOTHING')
        .run(stream, this.#clock.now());
      this.#db.prepare('DELETE FROM events WHERE stream = ?').run(stream);
    });
    this.#cutLog();
  }

  async close(): Promise<void> {
    this.#db.close();
    this.commits.close();
  }

  /** The write-ahead log still holds the old pages: truncate it now. */
  #cutLog(): void {
    this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  #appendOne(append: PreparedAppend, nowMs: number): AppendResult {
    const { stream, expected, events } = append;
    const begun = expected === 'none' ? this.#begin(append, nowMs) : undefined;
    if (begun !== undefined) return begun;
    const last = this.#lastRevision.get(stream)?.revision as number | undefined;
    const next = last === undefined ? 0 : last + 1;
    const start =
      expected === 'none' ? 0 : expected === 'any' ? this.#recordedFrom(stream, events, next) : expected + 1;
    if (start === next) return this.#insertFrom(start, append, nowMs);
    return this.#findRecorded(stream, events, start) ?? { kind: 'conflict', actual: last };
  }

  /** Begins the stream, without a look whether it exists, which costs half as much again. `undefined` where it does. */
  #begin(append: PreparedAppend, nowMs: number): AppendResult | undefined {
    try {
      return this.#insertFrom(0, append, nowMs);
    } catch (error) {
      // By the first event, which leaves nothing behind: where that one is missing, so are the others.
      if (isRepeated(error)) return undefined;
      throw error;
    }
  }

  #insertFrom(start: number, { stream, events }: PreparedAppend, nowMs: number): AppendResult {
    let position = 0;
    let revision = start;
    for (const { id, type, data, metadata } of events) {
      const inserted = this.#insert.run(stream, revision++, id, type, nowMs, data, metadata);
      position = inserted.lastInsertRowid as number;
    }
    return { kind: 'appended', revision: revision - 1, position };
  }

  /** The revision of the first of these events that is recorded already; `next` where none is. */
  #recordedFrom(stream: string, events: readonly EventText[], next: number): number {
    if (next === 0) return 0;
    const ids = JSON.stringify(events.map(({ id }) => id));
    return (this.#findId.get(stream, ids)?.revision as number | null) ?? next;
  }

  /** The result of an earlier append of exactly these events from revision `start` on. */
  #findRecorded(stream: string, events: readonly EventText[], start: number): AppendResult | undefined {
    const rows = this.#readIds.all(stream, start, events.length) as unknown as EventRow[];
    const last = rows.at(-1);
    if (last === undefined || rows.length !== events.length) return undefined;
    if (rows.some(({ id }, index) => id !== events[index]?.id)) return undefined;
    return { kind: 'appended', revision: last.revision, position: last.position };
  }

  #isErased(stream: string): boolean {
    return this.#findErased.get(stream) !== undefined;
  }
}

type PreparedAppend = Omit<Append, 'events'> & { readonly events: readonly EventText[] };
