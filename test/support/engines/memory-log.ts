import type { Clock } from '../../../src/base/clock.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { SqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { EVENT_MIGRATIONS } from '../../../src/engines/sqlite/event-store/schema.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { MemoryChanges } from './memory-stores.ts';

/** An event as it is stored. */
export interface LoggedEvent {
  readonly position: number;
  readonly stream: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
  readonly recordedAtMs: number;
}

let logs = 0;

/** A log in memory for tests. Several stores can share it, and it lasts as long as this object. */
export class MemoryLog {
  readonly #path = `file:/events-${++logs}?mode=memory&cache=shared`;
  readonly #handles = new Set<MemoryChanges>();
  readonly #db = this.#open();
  readonly #head = this.#db.prepare("SELECT max(seq) AS seq FROM sqlite_sequence WHERE name = 'events'");
  readonly #after = this.#db.prepare(
    `SELECT position, stream, type, data, metadata, recorded_at AS recordedAtMs
     FROM events WHERE position > ? ORDER BY position`,
  );

  get head(): number {
    return Number(this.#head.get()?.seq ?? 0);
  }

  /** Reads the events after a position, bypassing every store. Erased events are left out. */
  after(position: number): LoggedEvent[] {
    return this.#after.all(position) as unknown as LoggedEvent[];
  }

  store(clock: Clock): SqliteEventStore {
    return new SqliteEventStore({ db: this.#open(), clock, commits: new MemoryChanges(this.#handles) });
  }

  #open(): Database {
    return new Database(this.#path, { migrations: EVENT_MIGRATIONS, durability: 'full' });
  }
}

const METHODS = [
  'append',
  'readStream',
  'readLast',
  'readStreams',
  'isErased',
  'subscribe',
  'readBackwards',
  'head',
  'rewrite',
  'erase',
  'close',
] as const;

/** Opens the embedded event store in memory, as an object whose methods tests can replace. */
export function openMemoryEventStore(log: MemoryLog, clock: Clock): EventStore {
  const store = log.store(clock);
  const methods = METHODS.map((method) => [method, (store[method] as () => unknown).bind(store)]);
  return Object.fromEntries(methods) as EventStore;
}
