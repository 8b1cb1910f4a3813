import type { StatementSync } from 'node:sqlite';
import { type Clock, steadyClock } from '../../../base/clock.ts';
import { Signal } from '../../../base/signal.ts';
import { world } from '../../../base/world.ts';
import type {
  Append,
  AppendResult,
  BackwardsBatch,
  EventStore,
  StreamRange,
  SubscribeOptions,
  SubscriptionBatch,
} from '../../../event-store/event-store.ts';
import { jsonText } from '../../../event-store/new-event.ts';
import type { Position, RecordedEvent } from '../../../event-store/recorded-event.ts';
import {
  repeatedAppend,
  type StoredAppend,
  type StoredEvent,
  storedAppends,
} from '../../../event-store/stored-append.ts';
import type { ChangeSignal } from '../../../tables/tables.ts';
import { CommitWatch } from '../driver/commit-watch.ts';
import { Database } from '../driver/database.ts';
import { isRepeated } from '../driver/errors.ts';
import { type EventRow, EventRows } from './event-rows.ts';
import { type ReadAllOptions, type ReadBackwardsOptions, SqliteLogReader } from './log-reader.ts';
import { EVENT_MIGRATIONS } from './schema.ts';

const HEARTBEAT_MS = 1_000;
const BATCH_SIZE = 500;

/** Opens the embedded event store, and creates a missing file. Several processes may share it. */
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
  /** Notifies when this process or another one may have recorded an event. It is closed with the store. */
  readonly commits: ChangeSignal & { close(): void };
}

/** The event store in an SQLite file or in memory. A commit to a file survives a power cut. */
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
    const prepared = storedAppends(appends);
    const results = await this.#db.write(() => {
      const nowMs = this.#clock.now();
      const hasErased = this.#hasErased.get() !== undefined; // most logs have none, so that streams need not be looked up
      return prepared.map((append): AppendResult => {
        if (hasErased && this.#isErased(append.stream)) return { kind: 'erased' };
        return this.#appendOne(append, nowMs);
      });
    });
    this.commits.notify();
    return results;
  }

  async readStream(stream: string, range?: StreamRange): Promise<RecordedEvent[]> {
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

  /** Returns the names of all erased streams. */
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
        if (batch.position > position || steadyClock.now() - yieldedAtMs >= HEARTBEAT_MS) {
          position = batch.position;
          yield batch;
          yieldedAtMs = steadyClock.now();
        }
        if (signal.aborted) return;
        if (batch.caughtUp) await changed.wait(Math.max(0, yieldedAtMs + HEARTBEAT_MS - steadyClock.now()));
        else await world.nextTurn(); // reading is synchronous, so the event loop gets a turn between two batches
      }
    } finally {
      signal.removeEventListener('abort', notify);
      this.commits.remove(changed);
    }
  }

  /** Reads one step of a subscription on the calling thread. */
  readAll(options: ReadAllOptions): SubscriptionBatch {
    return this.#reader.readAll(options);
  }

  async readBackwards(options: ReadBackwardsOptions): Promise<BackwardsBatch> {
    const batch = this.#reader.readBackwards(options);
    await world.nextTurn(); // as in `subscribe`, since a caller takes step after step
    return batch;
  }

  /** Reads the events at these positions on the calling thread. Erased ones are left out. */
  readAt(positions: readonly Position[]): RecordedEvent[] {
    return this.#db.read(() => positions.flatMap((position) => this.#rows.at(position) ?? []));
  }

  /** Does `EventRows.batchAt` on the calling thread. */
  batchAt(positions: readonly Position[]): ReadonlyMap<Position, RecordedEvent | undefined> {
    return this.#db.read(() => this.#rows.batchAt(positions));
  }

  async head(): Promise<Position> {
    return this.end();
  }

  /** Reads `head` on the calling thread. */
  end(): Position {
    this.#db.assertOpen();
    return this.#reader.head();
  }

  async rewrite(events: readonly RecordedEvent[]): Promise<boolean> {
    const { stream, revision: last } = events.at(-1) ?? {};
    const update = this.#db.prepare(
      'UPDATE events SET data = ?1, id = ?2 WHERE stream = ?3 AND revision = ?4 AND data <> ?1',
    );
    return this.#db.write(() => {
      if (stream === undefined || this.#lastRevision.get(stream)?.revision !== last) return false;
      this.#db.prepare('INSERT INTO rewriting VALUES (?)').run(stream);
      for (const { data, revision } of events)
        update.run(jsonText(data), world.randomUUID(), stream, revision);
      this.#db.exec('DELETE FROM rewriting');
      return true;
    });
  }

  async erase(stream: string): Promise<void> {
    await this.#db.write(() => {
      this.#db
        .prepare('INSERT INTO erased_streams (stream, erased_at) VALUES (?, ?) ON CONFLICT DO NOTHING')
        .run(stream, this.#clock.now());
      this.#db.prepare('DELETE FROM events WHERE stream = ?').run(stream);
    });
  }

  async close(): Promise<void> {
    this.#db.close();
    this.commits.close();
  }

  #appendOne(append: StoredAppend, nowMs: number): AppendResult {
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

  /**
   * Begins the stream without a look-up, which would cost half as much again. Returns `undefined` if the stream exists.
   */
  #begin(append: StoredAppend, nowMs: number): AppendResult | undefined {
    try {
      return this.#insertFrom(0, append, nowMs);
    } catch (error) {
      // Only the first event can fail so, and nothing is written then: if it is missing, the stream does not exist.
      if (isRepeated(error)) return undefined;
      throw error;
    }
  }

  #insertFrom(start: number, { stream, events }: StoredAppend, nowMs: number): AppendResult {
    let position = 0;
    let revision = start;
    for (const { id, type, data, metadata } of events) {
      const inserted = this.#insert.run(stream, revision++, id, type, nowMs, data, metadata);
      position = inserted.lastInsertRowid as number;
    }
    return { kind: 'appended', revision: revision - 1, position };
  }

  /** Returns the revision of the first of these events that is already recorded; `next` if none is. */
  #recordedFrom(stream: string, events: readonly StoredEvent[], next: number): number {
    if (next === 0) return 0;
    const ids = JSON.stringify(events.map(({ id }) => id));
    return (this.#findId.get(stream, ids)?.revision as number | null) ?? next;
  }

  /** Returns the result of an earlier append of these events from revision `start` on. */
  #findRecorded(stream: string, events: readonly StoredEvent[], start: number): AppendResult | undefined {
    const rows = this.#readIds.all(stream, start, events.length) as unknown as EventRow[];
    return repeatedAppend(rows, events);
  }

  #isErased(stream: string): boolean {
    return this.#findErased.get(stream) !== undefined;
  }
}
