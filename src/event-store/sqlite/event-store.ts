import type { StatementSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { Signal } from '../../signal.ts';
import { CommitWatch } from '../../sqlite/commit-watch.ts';
import { Database } from '../../sqlite/database.ts';
import type {
  Append,
  AppendResult,
  BackwardsBatch,
  EventStore,
  NewEvent,
  Position,
  RecordedEvent,
  SubscribeOptions,
  SubscriptionBatch,
} from '../event-store.ts';
import {
  EVENT_COLUMNS,
  type EventRow,
  firstBatch,
  type ReadAllOptions,
  type ReadBackwardsOptions,
  SqliteLogReader,
  toRecorded,
} from './log-reader.ts';

const HEARTBEAT_MS = 1_000;
const BATCH_SIZE = 500;

export const eventMigrations = [
  `CREATE TABLE events (
     position INTEGER PRIMARY KEY AUTOINCREMENT,
     stream TEXT NOT NULL,
     revision INTEGER NOT NULL,
     id TEXT NOT NULL,
     type TEXT NOT NULL,
     recorded_at INTEGER NOT NULL, -- milliseconds
     data TEXT NOT NULL,           -- JSON, as is metadata
     metadata TEXT NOT NULL,
     UNIQUE (stream, revision)
   ) STRICT;
   -- Subscribers to accounts and operations skip the millions of transaction events.
   CREATE INDEX other_events ON events (position) WHERE stream NOT GLOB 'transaction-*';
   CREATE TABLE erased_streams (stream TEXT PRIMARY KEY, erased_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
   CREATE TRIGGER events_never_change BEFORE UPDATE ON events
     BEGIN SELECT RAISE(ABORT, 'events never change'); END;
   CREATE TRIGGER events_stay BEFORE DELETE ON events
     WHEN NOT EXISTS (SELECT 1 FROM erased_streams WHERE stream = OLD.stream)
     BEGIN SELECT RAISE(ABORT, 'events stay unless their stream is erased'); END;
   CREATE TRIGGER erased_streams_stay BEFORE DELETE ON erased_streams
     BEGIN SELECT RAISE(ABORT, 'what was erased stays erased'); END;`,
];

export interface SqliteEventStoreOptions {
  readonly path: string;
  readonly clock: Clock;
}

/** Opens the embedded event store; creates the file where it is missing. Several processes may share it. */
export function openSqliteEventStore(options: SqliteEventStoreOptions): SqliteEventStore {
  return new SqliteEventStore(options);
}

/** The event store on one SQLite file. A commit survives a power cut. */
export class SqliteEventStore implements EventStore {
  /** Notifies when an event may have been recorded, by this process or another. */
  readonly commits: CommitWatch;
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #reader: SqliteLogReader;
  readonly #lookUp: StatementSync;
  readonly #insert: StatementSync;
  readonly #readStream: StatementSync;
  readonly #readIds: StatementSync;
  readonly #findId: StatementSync;
  readonly #readAt: StatementSync;

  constructor({ path, clock }: SqliteEventStoreOptions) {
    const db = new Database(path, { migrations: eventMigrations, durability: 'full' });
    this.#db = db;
    this.#clock = clock;
    this.#reader = new SqliteLogReader(db);
    this.commits = new CommitWatch(db);
    this.#lookUp = db.prepare(
      `SELECT (SELECT revision FROM events WHERE stream = ?1 ORDER BY revision DESC LIMIT 1) AS last,
              EXISTS (SELECT 1 FROM erased_streams WHERE stream = ?1) AS erased`,
    );
    this.#insert = db.prepare(
      `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#readStream = db.prepare(
      `SELECT ${EVENT_COLUMNS} FROM events WHERE stream = ? AND revision >= ? ORDER BY revision`,
    );
    this.#readIds = db.prepare(
      'SELECT id, revision, position FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?',
    );
    this.#findId = db.prepare(
      `SELECT min(revision) AS revision FROM events
       WHERE stream = ? AND id IN (SELECT value FROM json_each(?))`,
    );
    this.#readAt = db.prepare(`SELECT ${EVENT_COLUMNS} FROM events WHERE position = ?`);
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    const prepared = appends.map(({ events, ...target }) => ({ ...target, events: events.map(toText) }));
    if (prepared.some(({ events }) => events.length === 0)) {
      throw new RangeError('an append needs at least one event');
    }
    const results = await this.#db.write(() => {
      const nowMs = this.#clock.now();
      return prepared.map((append) => this.#appendOne(append, nowMs));
    });
    this.commits.notify();
    return results;
  }

  async readStream(stream: string, options?: { readonly fromRevision?: number }): Promise<RecordedEvent[]> {
    this.#db.assertOpen();
    return this.#rowsOf(stream, options?.fromRevision ?? 0).map(toRecorded);
  }

  async readStreams(streams: readonly string[]): Promise<RecordedEvent[][]> {
    const found = this.#db.read(() => streams.map((stream) => this.#rowsOf(stream, 0)));
    return found.map((rows) => rows.map(toRecorded));
  }

  async isErased(stream: string): Promise<boolean> {
    this.#db.assertOpen();
    return this.#stateOf(stream).erased;
  }

  /** The names of all erased streams. */
  async erasedStreams(): Promise<readonly string[]> {
    const rows = this.#db.prepare('SELECT stream FROM erased_streams ORDER BY stream').all();
    return rows.map((row) => row.stream as string);
  }

  async *subscribe(options: SubscribeOptions): AsyncGenerator<SubscriptionBatch, void, undefined> {
    const { prefixes, signal, batchSize: limit = BATCH_SIZE } = options;
    const changed = new Signal();
    const notify = (): void => changed.notify();
    signal.addEventListener('abort', notify);
    try {
      if (!signal.aborted) this.commits.add(changed);
      let position = options.after;
      let yieldedAtMs = Number.NEGATIVE_INFINITY; // so that the first batch comes at once, even an empty one
      while (!signal.aborted) {
        changed.reset();
        const batch = this.readAll({ prefixes, after: position, limit });
        if (batch.position > position || performance.now() - yieldedAtMs >= HEARTBEAT_MS) {
          position = batch.position;
          yield batch;
          yieldedAtMs = performance.now();
        }
        if (signal.aborted) return;
        if (batch.caughtUp) await changed.wait(Math.max(0, yieldedAtMs + HEARTBEAT_MS - performance.now()));
        else await nextTurn(); // reading is synchronous: give the event loop a turn between two batches
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
    return this.#reader.readBackwards(options);
  }

  /** The events at these positions, read on the calling thread; those that were erased are left out. */
  readAt(positions: readonly Position[]): RecordedEvent[] {
    return this.#db.read(() => [...this.#rowsAt(positions)]).flatMap((row) => (row ? [toRecorded(row)] : []));
  }

  /** As `readAt`, for as many of the first positions as make one batch: `positionCount`. */
  readSomeAt(positions: readonly Position[]): {
    readonly events: RecordedEvent[];
    readonly positionCount: number;
  } {
    const { events, rowCount } = this.#db.read(() => firstBatch(this.#rowsAt(positions)));
    return { events, positionCount: rowCount };
  }

  async head(): Promise<Position> {
    return this.end();
  }

  async hasReached(position: Position): Promise<boolean> {
    return position <= this.end();
  }

  /** As `head`, read on the calling thread. */
  end(): Position {
    this.#db.assertOpen();
    return this.#reader.head();
  }

  async erase(stream: string): Promise<void> {
    await this.#db.write(() => {
      this.#db
        .prepare('INSERT INTO erased_streams (stream, erased_at) VALUES (?, ?) ON CONFLICT DO NOTHING')
        .run(stream, this.#clock.now());
      this.#db.prepare('DELETE FROM events WHERE stream = ?').run(stream);
    });
    // The write-ahead log still holds the old pages: truncate it now.
    this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  async close(): Promise<void> {
    this.#db.close();
    this.commits.close();
  }

  #appendOne({ stream, expected, events }: PreparedAppend, nowMs: number): AppendResult {
    const { last, erased } = this.#stateOf(stream);
    if (erased) return { kind: 'erased' };
    const next = last === undefined ? 0 : last + 1;
    const start =
      expected === 'none' ? 0 : expected === 'any' ? this.#recordedFrom(stream, events, next) : expected + 1;
    if (start !== next)
      return this.#findRecorded(stream, events, start) ?? { kind: 'conflict', actual: last };
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

  #stateOf(stream: string): { last: number | undefined; erased: boolean } {
    const row = this.#lookUp.get(stream) as { last: number | null; erased: number };
    return { last: row.last ?? undefined, erased: row.erased === 1 };
  }

  *#rowsAt(positions: readonly Position[]): Generator<EventRow | undefined, void> {
    for (const position of positions) yield this.#readAt.get(position) as unknown as EventRow | undefined;
  }

  #rowsOf(stream: string, fromRevision: number): EventRow[] {
    return this.#readStream.all(stream, fromRevision) as unknown as EventRow[];
  }
}

type PreparedAppend = Omit<Append, 'events'> & { readonly events: readonly EventText[] };

interface EventText {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

function toText({ id, type, data, metadata }: NewEvent): EventText {
  return { id, type, data: JSON.stringify(data) ?? 'null', metadata: JSON.stringify(metadata) };
}
