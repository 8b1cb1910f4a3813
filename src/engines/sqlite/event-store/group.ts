import type { Clock } from '../../../base/clock.ts';
import { FuelError } from '../../../base/errors.ts';
import type { GroupEvent, SubscriptionBatch } from '../../../event-store/event-store.ts';
import { isDamaged, type Position, type RecordedEvent } from '../../../event-store/recorded-event.ts';
import { isAnchor } from '../../../event-store/store-identity.ts';
import type { Database } from '../driver/database.ts';
import type { SqliteEventStore } from './event-store.ts';

export interface SqliteGroupOptions {
  readonly db: Database;
  readonly store: SqliteEventStore;
  readonly clock: Clock;
  readonly group: string;
}

/** The longest delay that is asked for. */
const MAX_DELAY_MS = 10 * 60_000;

/** The result of one claim. */
export interface ClaimedEvents {
  readonly events: readonly GroupEvent[];
  /** When the lease of these events ends, by the clock. */
  readonly leasedUntilMs: number;
  /** When the next message is due, by the clock; infinite if there is none. */
  readonly nextDueMs: number;
  /** True if more can be claimed at once. */
  readonly more: boolean;
}

type Lease = Pick<ClaimedEvents, 'leasedUntilMs'> & { readonly holder: string };

interface MessageRow {
  readonly position: Position;
  readonly retry_count: number;
}

interface GroupRow {
  readonly prefixes: string;
  readonly ack_timeout_ms: number;
  readonly position: number;
  readonly recorded_at: number | null;
}

export const SUBSCRIPTION_MIGRATIONS = [
  `CREATE TABLE groups (
     name TEXT PRIMARY KEY,
     prefixes TEXT NOT NULL,        -- JSON array
     ack_timeout_ms INTEGER NOT NULL,
     position INTEGER NOT NULL,     -- every matching event up to here was acknowledged or has a message
     recorded_at INTEGER            -- of the event at the position, which is different in another log
   ) STRICT, WITHOUT ROWID;
   -- Events that were handed out; an acknowledged one has no row.
   CREATE TABLE messages (
     group_name TEXT NOT NULL,
     position INTEGER NOT NULL,
     state TEXT NOT NULL CHECK (state IN ('out', 'retry', 'parked')),
     retry_count INTEGER NOT NULL,  -- how often it was handed out before
     due_at INTEGER,                -- milliseconds: when the lease ends, or when to hand it out again
     holder TEXT,
     reason TEXT,
     parked_at INTEGER,
     PRIMARY KEY (group_name, position)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX messages_due ON messages (group_name, due_at) WHERE due_at IS NOT NULL;`,
];

/** One group's messages. Each method is one write transaction, so that two processes never claim the same event. */
export class SqliteGroup {
  readonly #db: Database;
  readonly #store: SqliteEventStore;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #statements: ReturnType<typeof prepareStatements>;
  /** True once the log was found to have the event at the group's position. */
  #isKnownLog = false;

  constructor({ db, store, clock, group }: SqliteGroupOptions) {
    this.#db = db;
    this.#store = store;
    this.#clock = clock;
    this.#name = group;
    this.#statements = prepareStatements(db);
  }

  /** Claims messages that are due, then new events. `holder` gets at most `bufferSize` with those that it has. */
  claim(holder: string, bufferSize: number): Promise<ClaimedEvents> {
    return this.#db.write(() => {
      const group = this.#settings();
      const nowMs = this.#clock.now();
      const lease = { holder, leasedUntilMs: nowMs + group.ack_timeout_ms };
      // A due time later than possible was stored while a clock was ahead, perhaps by a process that was killed.
      this.#statements.correct.run(nowMs, this.#name, lease.leasedUntilMs, nowMs + MAX_DELAY_MS);
      const held = this.#statements.held.get(this.#name, nowMs, holder)?.held as number;
      const due = this.#takeDue(lease, nowMs, Math.max(0, bufferSize - held));
      const limit = due.more ? 0 : bufferSize - held - due.events.length;
      const fresh = limit > 0 ? this.#takeNew(group, lease, limit) : undefined;
      return {
        events: [...due.events, ...(fresh?.events ?? []).map((event) => ({ event, retryCount: 0 }))],
        leasedUntilMs: lease.leasedUntilMs,
        nextDueMs: this.#nextDueMs(),
        more: due.more || fresh?.caughtUp === false,
      };
    });
  }

  /** Gives back events that were claimed and not handed out, as if they had never been claimed. */
  release(holder: string, events: readonly GroupEvent[]): Promise<void> {
    return this.#db.write(() => {
      for (const { event, retryCount } of events) {
        this.#statements.release.run(this.#clock.now(), retryCount, this.#name, event.position, holder);
      }
    });
  }

  ack(holder: string, events: readonly GroupEvent[]): Promise<void> {
    return this.#db.write(() => {
      this.#statements.ack.run(this.#name, positionsOf(events.map(({ event }) => event)), holder);
    });
  }

  retry(
    holder: string,
    event: GroupEvent,
    { reason, delayMs }: { readonly reason: string; readonly delayMs: number },
  ): Promise<void> {
    return this.#db.write(() => {
      const dueMs = this.#clock.now() + delayMs;
      this.#statements.retry.run(dueMs, reason, this.#name, event.event.position, holder);
    });
  }

  park(holder: string, event: GroupEvent, reason: string): Promise<void> {
    return this.#db.write(() => {
      this.#statements.park.run(reason, this.#clock.now(), this.#name, event.event.position, holder);
    });
  }

  #nextDueMs(): number {
    return (this.#statements.nextDue.get(this.#name)?.due_at as number | null) ?? Infinity;
  }

  #settings(): GroupRow {
    const row = this.#statements.group.get(this.#name) as GroupRow | undefined;
    if (row === undefined) throw new FuelError('REFUSED', `there is no group ${this.#name}: ensure it first`);
    return row;
  }

  /**
   * Claims one batch of the messages that are due, and deletes those of erased events. `more` is true if other messages
   * are due.
   */
  #takeDue(
    { holder, leasedUntilMs }: Lease,
    nowMs: number,
    limit: number,
  ): Pick<ClaimedEvents, 'events' | 'more'> {
    const due = this.#statements.due.all(this.#name, nowMs, limit) as unknown as MessageRow[];
    const read = this.#store.batchAt(due.map(({ position }) => position));
    const events: GroupEvent[] = [];
    for (const { position, retry_count: retryCount } of due.slice(0, read.size)) {
      const event = read.get(position);
      if (event === undefined) this.#statements.forget.run(this.#name, position);
      else {
        this.#statements.take.run(retryCount, holder, leasedUntilMs, this.#name, position);
        events.push({ event, retryCount });
      }
    }
    return { events, more: read.size < due.length };
  }

  #takeNew(group: GroupRow, { holder, leasedUntilMs }: Lease, limit: number): SubscriptionBatch {
    const after = this.#positionIn(group);
    const batch = this.#store.readAll({ prefixes: JSON.parse(group.prefixes), after, limit });
    this.#statements.insert.run(this.#name, leasedUntilMs, holder, positionsOf(batch.events));
    if (batch.position !== group.position) {
      const last = batch.events.at(-1);
      const there = last?.position === batch.position ? [last] : this.#store.readAt([batch.position]);
      const whole = there.find((event) => !isDamaged(event)); // the time of a damaged one may be damaged too
      this.#statements.move.run(batch.position, whole?.recordedAtMs ?? null, this.#name);
    }
    return batch;
  }

  /**
   * Returns where the group continues. If an older backup of the log was restored, the log ends before the group's
   * position or has another event there. Then the group starts over, since it would skip what was recorded after the
   * restore. Handling an event twice changes nothing.
   */
  #positionIn(group: GroupRow): Position {
    const { position } = group;
    if (position <= this.#store.end() && (this.#isKnownLog || this.#isOwnLog(group))) return position;
    this.#statements.forgetAll.run(this.#name);
    return 0;
  }

  /** Checks the log once, since nobody exchanges the log of a running process. */
  #isOwnLog({ position, recorded_at: recordedAtMs }: GroupRow): boolean {
    const [found] = this.#store.readAt([position]);
    this.#isKnownLog =
      found === undefined || recordedAtMs === null || isAnchor(found, { position, recordedAtMs });
    return this.#isKnownLog;
  }
}

/** Returns the positions as JSON, so that one statement covers them all. */
function positionsOf(events: readonly RecordedEvent[]): string {
  return JSON.stringify(events.map(({ position }) => position));
}

function prepareStatements(db: Database) {
  const ofHolder = "state = 'out' AND holder = ?";
  const end = `WHERE group_name = ? AND position = ? AND ${ofHolder}`;
  return {
    group: db.prepare('SELECT prefixes, ack_timeout_ms, position, recorded_at FROM groups WHERE name = ?'),
    move: db.prepare('UPDATE groups SET position = ?, recorded_at = ? WHERE name = ?'),
    held: db.prepare(
      'SELECT count(*) AS held FROM messages WHERE group_name = ? AND due_at > ? AND holder = ?',
    ),
    due: db.prepare(
      `SELECT position, retry_count + (state = 'out') AS retry_count FROM messages
       WHERE group_name = ? AND due_at <= ? ORDER BY due_at, position LIMIT ?`,
    ),
    correct: db.prepare(
      "UPDATE messages SET due_at = ? WHERE group_name = ? AND due_at > iif(state = 'out', ?, ?)",
    ),
    nextDue: db.prepare(
      'SELECT min(due_at) AS due_at FROM messages WHERE group_name = ? AND due_at IS NOT NULL',
    ),
    take: db.prepare(
      `UPDATE messages SET state = 'out', retry_count = ?, holder = ?, due_at = ?
       WHERE group_name = ? AND position = ?`,
    ),
    insert: db.prepare(
      `INSERT INTO messages (group_name, position, state, retry_count, due_at, holder)
       SELECT ?1, value, 'out', 0, ?2, ?3 FROM json_each(?4)`,
    ),
    forgetAll: db.prepare('DELETE FROM messages WHERE group_name = ?'),
    forget: db.prepare('DELETE FROM messages WHERE group_name = ? AND position = ?'),
    release: db.prepare(
      `UPDATE messages SET state = 'retry', due_at = ?, retry_count = ?, holder = NULL ${end}`,
    ),
    ack: db.prepare(
      `DELETE FROM messages WHERE group_name = ? AND position IN (SELECT value FROM json_each(?)) AND ${ofHolder}`,
    ),
    retry: db.prepare(
      `UPDATE messages SET state = 'retry', retry_count = retry_count + 1, holder = NULL, due_at = ?, reason = ?
       ${end}`,
    ),
    park: db.prepare(
      `UPDATE messages SET state = 'parked', due_at = NULL, holder = NULL, reason = ?, parked_at = ? ${end}`,
    ),
  };
}
