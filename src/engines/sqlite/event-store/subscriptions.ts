import type { Clock } from '../../../base/clock.ts';
import {
  type ConsumeOptions,
  type GroupConsumer,
  type GroupSettings,
  type GroupStatus,
  MAX_PARKED_READ,
  type ParkedEvent,
  type PersistentSubscriptions,
} from '../../../event-store/event-store.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import { Database } from '../driver/database.ts';
import type { SqliteEventStore } from './event-store.ts';
import { SqliteGroup, SUBSCRIPTION_MIGRATIONS } from './group.ts';
import { SqliteGroupConsumer } from './group-consumer.ts';

export interface SqliteSubscriptionsOptions {
  /** A separate file with positions. The events stay in the store. */
  readonly path: string;
  readonly store: SqliteEventStore;
  readonly clock: Clock;
  /** The longest pause between two claims of a waiting consumer. Tests that move the clock make it shorter. */
  readonly pollMs?: number;
}

/** Within this time a consumer notices events that another one gives back or replays. It notices new events at once. */
const POLL_MS = 1_000;

/** Competing consumers, of several processes too, in a separate SQLite file. `close` leaves the event store open. */
export class SqliteSubscriptions implements PersistentSubscriptions {
  readonly #db: Database;
  readonly #store: SqliteEventStore;
  readonly #clock: Clock;
  readonly #pollMs: number;

  constructor({ path, store, clock, pollMs = POLL_MS }: SqliteSubscriptionsOptions) {
    // If a power cut loses a commit, its events are handed out again, which consumers must be able to handle anyway.
    this.#db = new Database(path, { migrations: SUBSCRIPTION_MIGRATIONS, durability: 'normal' });
    this.#store = store;
    this.#clock = clock;
    this.#pollMs = pollMs;
  }

  async ensureGroup(group: string, { prefixes, ackTimeoutMs }: GroupSettings): Promise<void> {
    await this.#db.write(() => {
      this.#db
        .prepare(
          `INSERT INTO groups (name, prefixes, ack_timeout_ms, position) VALUES (?, ?, ?, 0)
           ON CONFLICT (name) DO UPDATE SET prefixes = excluded.prefixes, ack_timeout_ms = excluded.ack_timeout_ms`,
        )
        .run(group, JSON.stringify(prefixes), ackTimeoutMs);
    });
  }

  /** The iteration rejects with `REFUSED` if there is no such group. */
  consume(group: string, options: ConsumeOptions): GroupConsumer {
    const clock = this.#clock;
    return new SqliteGroupConsumer({
      group: new SqliteGroup({ db: this.#db, store: this.#store, clock, group }),
      clock,
      ...options,
      pollMs: this.#pollMs,
      commits: this.#store.commits,
      isOpen: () => this.#db.isOpen,
    });
  }

  async parked(group: string, limit = MAX_PARKED_READ): Promise<ParkedEvent[]> {
    const rows = this.#db
      .prepare(
        `SELECT position, reason, parked_at FROM messages WHERE group_name = ? AND state = 'parked'
         ORDER BY parked_at, position LIMIT ?`,
      )
      .all(group, limit) as unknown as { position: Position; reason: string; parked_at: number }[];
    const events = new Map(
      this.#store.readAt(rows.map(({ position }) => position)).map((event) => [event.position, event]),
    );
    return rows.flatMap(({ position, reason, parked_at: parkedAtMs }) => {
      const event = events.get(position); // missing if its stream was erased
      return event === undefined ? [] : [{ event, reason, parkedAtMs }];
    });
  }

  async status(group: string): Promise<GroupStatus | undefined> {
    const row = this.#db
      .prepare(
        `SELECT position,
           (SELECT min(position) FROM messages WHERE group_name = name AND due_at IS NOT NULL) AS open,
           (SELECT count(*) FROM messages WHERE group_name = name AND state = 'parked') AS parked
         FROM groups WHERE name = ?`,
      )
      .get(group) as { position: Position; open: Position | null; parked: number } | undefined;
    if (row === undefined) return undefined;
    const { position, open, parked } = row;
    return { position: open === null ? position : Math.min(position, open - 1), parked };
  }

  async replayParked(group: string): Promise<number> {
    return this.#db.write(() => {
      const replay = this.#db.prepare(
        `UPDATE messages SET state = 'retry', retry_count = 0, due_at = ?, reason = NULL, parked_at = NULL
         WHERE group_name = ? AND state = 'parked'`,
      );
      return replay.run(this.#clock.now(), group).changes as number;
    });
  }

  async close(): Promise<void> {
    this.#db.close();
  }
}
