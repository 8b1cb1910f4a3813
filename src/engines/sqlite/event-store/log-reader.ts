import type { StatementSync } from 'node:sqlite';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import type { BackwardsBatch, SubscriptionBatch } from '../../../event-store/event-store.ts';
import type { Position, RecordedEvent } from '../../../event-store/recorded-event.ts';
import type { Database } from '../driver/database.ts';
import { orDamaged } from '../driver/errors.ts';
import { EVENT_COLUMNS, type EventRow, type EventRows, UNPARSED_COLUMNS } from './event-rows.ts';

/** How many positions one read scans, so that a filter which matches little does not block the event loop. */
const MAX_SCANNED = 10_000;
/** The same for the index without transaction events, which are most of the log. */
const MAX_SCANNED_BY_INDEX = 100_000;

export interface ReadAllOptions {
  /** The prefixes of `SubscribeOptions`. */
  readonly prefixes: readonly string[];
  readonly after: Position;
  /** The maximum number of events to return. */
  readonly limit: number;
  readonly unparsed?: boolean | undefined;
}

export interface ReadBackwardsOptions {
  readonly prefixes: readonly string[];
  readonly before?: Position | undefined;
  readonly limit: number;
}

type Order = 'ASC' | 'DESC';

interface ScannedRange extends ReadAllOptions {
  readonly to: Position;
}

/** Reads the log in order of position, on the calling thread, in bounded steps. */
export class SqliteLogReader {
  readonly #db: Database;
  readonly #rows: EventRows;
  readonly #head: StatementSync;
  readonly #byQuery = new Map<string, StatementSync>();

  constructor(db: Database, rows: EventRows) {
    this.#db = db;
    this.#rows = rows;
    // This is not the largest position in the table, since erasing the last stream must not move the end backwards.
    this.#head = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
  }

  head(): Position {
    return (this.#head.get()?.seq as number | undefined) ?? 0;
  }

  /** Reads the matching events after `after`. */
  readAll({ prefixes, after, limit, unparsed }: ReadAllOptions): SubscriptionBatch {
    const { events, isFull, scannedTo, head } = this.#db.read(() => {
      const end = this.head();
      const to = Math.min(after + scanned(prefixes), end);
      return { ...this.#read({ prefixes, after, to, limit, unparsed }, 'ASC'), scannedTo: to, head: end };
    });
    const last = isFull || events.length === limit ? events.at(-1) : undefined;
    const position = last?.position ?? Math.max(after, scannedTo);
    return { events, position, checkpoint: position, caughtUp: position >= head };
  }

  /** Does `EventStore.readBackwards`. */
  readBackwards({ prefixes, before, limit }: ReadBackwardsOptions): BackwardsBatch {
    return this.#db.read(() => {
      const to = Math.min(before ?? Infinity, this.head() + 1) - 1;
      const after = Math.max(0, to - scanned(prefixes));
      const { events, isFull } = this.#read({ prefixes, after, to, limit }, 'DESC');
      const last = isFull || events.length === limit ? events.at(-1) : undefined;
      const position = last?.position ?? after + 1;
      return { events, position, atStart: position <= 1 };
    });
  }

  #read(range: ScannedRange, order: Order): { readonly events: RecordedEvent[]; readonly isFull: boolean } {
    const { prefixes, after, to, limit, unparsed } = range;
    try {
      const rows = this.#statement(range, order).iterate(after, to, ...prefixes, limit);
      return this.#rows.firstBatch(rowsOf(rows), unparsed);
    } catch (error) {
      throw orDamaged(this.#db.path, error);
    }
  }

  #statement({ prefixes, unparsed }: ScannedRange, order: Order): StatementSync {
    const columns = unparsed ? UNPARSED_COLUMNS : EVENT_COLUMNS;
    const sql = readAllSql(prefixes.length, leavesOutTransactions(prefixes), { order, columns });
    const known = this.#byQuery.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true); // reading 100,000 events as objects takes half as long again
    this.#byQuery.set(sql, statement);
    return statement;
  }
}

function scanned(prefixes: readonly string[]): number {
  return leavesOutTransactions(prefixes) ? MAX_SCANNED_BY_INDEX : MAX_SCANNED;
}

type Columns = [number, string, number, string, string, number, EventRow['data'], EventRow['metadata']];

/** Makes rows of arrays that have the order of `EVENT_COLUMNS`. */
function* rowsOf(arrays: Iterable<unknown>): Generator<EventRow, void> {
  for (const values of arrays as Iterable<Columns>) {
    const [position, stream, revision, id, type, recorded_at, data, metadata] = values;
    yield { position, stream, revision, id, type, recorded_at, data, metadata };
  }
}

/**
 * Returns a statement with the parameters `after`, `to`, each prefix, and the limit. With `others` it uses the index
 * without transaction events.
 */
export function readAllSql(
  prefixCount: number,
  others: boolean,
  { order, columns }: { readonly order: Order; readonly columns: string } = {
    order: 'ASC',
    columns: EVENT_COLUMNS,
  },
): string {
  const matches = Array.from({ length: prefixCount }, () => 'instr(stream, ?) = 1').join(' OR ');
  return (
    `SELECT ${columns} FROM events ${others ? 'INDEXED BY other_events' : ''} ` +
    `WHERE position > ? AND position <= ? ` +
    `${others ? `AND stream NOT GLOB '${TRANSACTION_STREAMS}*'` : ''} ` +
    `${matches === '' ? '' : `AND (${matches})`} ORDER BY position ${order} LIMIT ?`
  );
}

/** True if no transaction stream can match any of the prefixes. */
export function leavesOutTransactions(prefixes: readonly string[]): boolean {
  return (
    prefixes.length > 0 &&
    prefixes.every(
      (prefix) => !prefix.startsWith(TRANSACTION_STREAMS) && !TRANSACTION_STREAMS.startsWith(prefix),
    )
  );
}
