import type { StatementSync } from 'node:sqlite';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { Database } from '../../sqlite/database.ts';
import { MAX_BATCH_BYTES } from '../batch-bytes.ts';
import { type Position, type RecordedEvent, type SubscriptionBatch, Unreadable } from '../event-store.ts';

export const EVENT_COLUMNS = 'position, stream, revision, id, type, recorded_at, data, metadata';

// A read looks at no more places than this, so that a filter that matches little never holds up the loop.
const SCAN_EVENTS = 10_000;
const SCAN_OTHER_EVENTS = 100_000; // most places are transaction events, which the index leaves out

export interface EventRow {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly recorded_at: number;
  readonly data: string;
  readonly metadata: string;
}

export interface ReadAllOptions {
  /** As in `SubscribeOptions`. */
  readonly prefixes: readonly string[];
  readonly after: Position;
  /** Most events to return. */
  readonly limit: number;
}

/** Reads the log in order of position, on the calling thread, in reads of bounded length. */
export class SqliteLogReader {
  readonly #db: Database;
  readonly #head: StatementSync;
  readonly #byQuery = new Map<string, StatementSync>();

  constructor(db: Database) {
    this.#db = db;
    // The counter, not the largest position: erasing the last stream must not move the end backwards.
    this.#head = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
  }

  head(): Position {
    return (this.#head.get()?.seq as number | undefined) ?? 0;
  }

  /** The matching events behind `after`; `position` and `caughtUp` as in `SubscriptionBatch`. */
  readAll({ prefixes, after, limit }: ReadAllOptions): SubscriptionBatch {
    const others = leavesOutTransactions(prefixes);
    const statement = this.#statement(prefixes.length, others);
    const { events, isFull, scannedTo, head } = this.#db.read(() => {
      const end = this.head();
      const to = Math.min(after + (others ? SCAN_OTHER_EVENTS : SCAN_EVENTS), end);
      const read = eventsOf(statement.iterate(after, to, ...prefixes, limit));
      return { ...read, scannedTo: to, head: end };
    });
    const last = isFull || events.length === limit ? events.at(-1) : undefined;
    const position = last?.position ?? Math.max(after, scannedTo);
    return { events, position, caughtUp: position >= head };
  }

  #statement(prefixCount: number, others: boolean): StatementSync {
    const sql = readAllSql(prefixCount, others);
    const known = this.#byQuery.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    this.#byQuery.set(sql, statement);
    return statement;
  }
}

/** What the event takes as text: quicker to tell than what it takes in memory, which is ten times that at most. */
export function textBytes({ data, metadata }: Pick<EventRow, 'data' | 'metadata'>): number {
  return data.length + metadata.length;
}

/** Row by row: the text of a row that is left for the next batch is never read. */
function eventsOf(rows: Iterable<unknown>): { readonly events: RecordedEvent[]; readonly isFull: boolean } {
  const events: RecordedEvent[] = [];
  let bytes = 0;
  for (const row of rows) {
    events.push(toRecorded(row as EventRow));
    bytes += textBytes(row as EventRow);
    if (bytes >= MAX_BATCH_BYTES) return { events, isFull: true };
  }
  return { events, isFull: false };
}

/** Parameters: after, up to, the prefixes, limit. `others`: by the index that has no transaction event. */
export function readAllSql(prefixCount: number, others: boolean): string {
  const matches = Array.from({ length: prefixCount }, () => 'instr(stream, ?) = 1').join(' OR ');
  return (
    `SELECT ${EVENT_COLUMNS} FROM events ${others ? 'INDEXED BY other_events' : ''} ` +
    `WHERE position > ? AND position <= ? ` +
    `${others ? `AND stream NOT GLOB '${TRANSACTION_STREAMS}*'` : ''} ` +
    `${matches === '' ? '' : `AND (${matches})`} ORDER BY position LIMIT ?`
  );
}

/** Whether no transaction stream can match any of the prefixes. */
export function leavesOutTransactions(prefixes: readonly string[]): boolean {
  return (
    prefixes.length > 0 &&
    prefixes.every(
      (prefix) => !prefix.startsWith(TRANSACTION_STREAMS) && !TRANSACTION_STREAMS.startsWith(prefix),
    )
  );
}

export function toRecorded(row: EventRow): RecordedEvent {
  return {
    position: row.position,
    stream: row.stream,
    revision: row.revision,
    id: row.id,
    type: row.type,
    data: parse(row.data, 'data'),
    metadata: parse(row.metadata, 'metadata'),
    recordedAtMs: row.recorded_at,
  };
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return new Unreadable(`${what} is not JSON`); // the error itself quotes what may be personal
  }
}
