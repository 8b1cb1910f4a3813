import type { StatementSync } from 'node:sqlite';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { Database } from '../../sqlite/database.ts';
import { MAX_BATCH_BYTES } from '../batch-bytes.ts';
import {
  type BackwardsBatch,
  type Position,
  type RecordedEvent,
  type SubscriptionBatch,
  Unreadable,
} from '../event-store.ts';

export const EVENT_COLUMNS = 'position, stream, revision, id, type, recorded_at, data, metadata';

// How many positions one read scans, so that a filter that matches little does not block the event loop.
const MAX_SCANNED = 10_000;
const MAX_SCANNED_BY_INDEX = 100_000; // the index leaves out transaction events, which most are

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
  /** The maximum number of events to return. */
  readonly limit: number;
}

export interface ReadBackwardsOptions {
  readonly prefixes: readonly string[];
  readonly before?: Position | undefined;
  readonly limit: number;
}

/** Reads the log in order of position, on the calling thread, in bounded steps. */
export class SqliteLogReader {
  readonly #db: Database;
  readonly #head: StatementSync;
  readonly #byQuery = new Map<string, StatementSync>();

  constructor(db: Database) {
    this.#db = db;
    // Not the largest position: erasing the last stream must not move the end backwards.
    this.#head = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
  }

  head(): Position {
    return (this.#head.get()?.seq as number | undefined) ?? 0;
  }

  /** The matching events after `after`; `position` and `caughtUp` as in `SubscriptionBatch`. */
  readAll({ prefixes, after, limit }: ReadAllOptions): SubscriptionBatch {
    const others = leavesOutTransactions(prefixes);
    const statement = this.#statement(prefixes.length, others);
    const { events, isFull, scannedTo, head } = this.#db.read(() => {
      const end = this.head();
      const to = Math.min(after + (others ? MAX_SCANNED_BY_INDEX : MAX_SCANNED), end);
      const read = firstBatch(rowsOf(statement.iterate(after, to, ...prefixes, limit)));
      return { ...read, scannedTo: to, head: end };
    });
    const last = isFull || events.length === limit ? events.at(-1) : undefined;
    const position = last?.position ?? Math.max(after, scannedTo);
    return { events, position, checkpoint: position, caughtUp: position >= head };
  }

  /** As `EventStore.readBackwards`. */
  readBackwards({ prefixes, before, limit }: ReadBackwardsOptions): BackwardsBatch {
    const others = leavesOutTransactions(prefixes);
    const statement = this.#statement(prefixes.length, others, 'DESC');
    return this.#db.read(() => {
      const to = Math.min(before ?? Infinity, this.head() + 1) - 1;
      const after = Math.max(0, to - (others ? MAX_SCANNED_BY_INDEX : MAX_SCANNED));
      const { events, isFull } = firstBatch(rowsOf(statement.iterate(after, to, ...prefixes, limit)));
      const last = isFull || events.length === limit ? events.at(-1) : undefined;
      const position = last?.position ?? after + 1;
      return { events, position, atStart: position <= 1 };
    });
  }

  #statement(prefixCount: number, others: boolean, order: 'ASC' | 'DESC' = 'ASC'): StatementSync {
    const sql = readAllSql(prefixCount, others, order);
    const known = this.#byQuery.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true); // costs less than objects
    this.#byQuery.set(sql, statement);
    return statement;
  }
}

/**
 * The events of as many rows as make one batch; further ones are not read. `undefined` stands for a row that does not
 * exist. Counts the text, which is quicker than `eventBytes`; memory takes ten times that at most.
 */
export function firstBatch(rows: Iterable<EventRow | undefined>): {
  readonly events: RecordedEvent[];
  readonly rowCount: number;
  readonly isFull: boolean;
} {
  const events: RecordedEvent[] = [];
  let rowCount = 0;
  let bytes = 0;
  for (const row of rows) {
    rowCount++;
    if (row === undefined) continue;
    events.push(toRecorded(row));
    bytes += row.data.length + row.metadata.length;
    if (bytes >= MAX_BATCH_BYTES) return { events, rowCount, isFull: true };
  }
  return { events, rowCount, isFull: false };
}

/** From rows that are arrays, in the order of `EVENT_COLUMNS`. */
function* rowsOf(arrays: Iterable<unknown>): Generator<EventRow, void> {
  for (const values of arrays as Iterable<[number, string, number, string, string, number, string, string]>) {
    const [position, stream, revision, id, type, recorded_at, data, metadata] = values;
    yield { position, stream, revision, id, type, recorded_at, data, metadata };
  }
}

/** Parameters: after, up to, the prefixes, limit. `others`: by the index without transaction events. */
export function readAllSql(prefixCount: number, others: boolean, order: 'ASC' | 'DESC' = 'ASC'): string {
  const matches = Array.from({ length: prefixCount }, () => 'instr(stream, ?) = 1').join(' OR ');
  return (
    `SELECT ${EVENT_COLUMNS} FROM events ${others ? 'INDEXED BY other_events' : ''} ` +
    `WHERE position > ? AND position <= ? ` +
    `${others ? `AND stream NOT GLOB '${TRANSACTION_STREAMS}*'` : ''} ` +
    `${matches === '' ? '' : `AND (${matches})`} ORDER BY position ${order} LIMIT ?`
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
    metadata: metadataIn(row.metadata),
    recordedAtMs: row.recorded_at,
  };
}

/** The events of one step share their metadata, and nobody changes it: it is parsed once, and one value stands for all. */
let lastMetadata: { readonly text: string; readonly value: unknown } | undefined;

function metadataIn(text: string): unknown {
  if (lastMetadata?.text !== text) lastMetadata = { text, value: parse(text, 'metadata') };
  return lastMetadata.value;
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return new Unreadable(`${what} is not JSON`); // the error's own message quotes personal data
  }
}
