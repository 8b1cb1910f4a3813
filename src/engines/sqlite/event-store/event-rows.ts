import { isUtf8 } from 'node:buffer';
import type { StatementSync } from 'node:sqlite';
import { eventBytes, MAX_BATCH_BYTES } from '../../../event-store/batch-bytes.ts';
import type { StreamRange } from '../../../event-store/event-store.ts';
import {
  MAX_BYTES,
  type Position,
  parseStored,
  type RecordedEvent,
  tooLong,
  Unreadable,
} from '../../../event-store/recorded-event.ts';
import type { Database } from '../driver/database.ts';

/** Selects a text, or its length if it is too long to be parsed. SQLite knows the length without reading the text. */
const bounded = (what: 'data' | 'metadata', as: string) =>
  `iif(octet_length(${what}) > ${MAX_BYTES[what]}, octet_length(${what}), ${as}) AS ${what}`;
const PLACE_AND_TYPE = 'position, stream, revision, id, type, recorded_at';
export const EVENT_COLUMNS = `${PLACE_AND_TYPE}, ${bounded('data', 'data')}, ${bounded('metadata', 'metadata')}`;
/** Selects data and metadata as bytes, which SQLite returns without converting them to a text. */
export const UNPARSED_COLUMNS = `${PLACE_AND_TYPE}, ${bounded('data', 'CAST(data AS BLOB)')}, ${bounded('metadata', 'CAST(metadata AS BLOB)')}`;

/** A row as it is in the file. Only the position of a damaged row is certain. */
export interface EventRow {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly recorded_at: number;
  readonly data: string | number | Uint8Array;
  readonly metadata: string | number | Uint8Array;
}

/** SQLite reads this as no limit. */
const NO_LIMIT = -1;
/** Decoding a text of SQLite replaces bytes that are not UTF-8 with this character. */
const REPLACED = '\ufffd';
const HEAD = ['stream', 'id', 'type'] as const;
const TEXTS = [...HEAD, 'data', 'metadata'] as const;
const NUMBERS = ['revision', 'recorded_at'] as const;

/** Makes events of rows. The content of a damaged event is `Unreadable`. */
export class EventRows {
  readonly #ofStream: StatementSync;
  readonly #at: StatementSync;
  readonly #bytesAt: StatementSync;
  /** Events of one step share their metadata, which nobody changes. So it is parsed once, and they share the value. */
  #lastMetadata: { readonly text: EventRow['metadata']; readonly value: unknown } | undefined;

  constructor(db: Database) {
    this.#ofStream = db.prepare(
      `SELECT ${EVENT_COLUMNS} FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?`,
    );
    this.#at = db.prepare(`SELECT ${EVENT_COLUMNS} FROM events WHERE position = ?`);
    this.#bytesAt = db.prepare(
      `SELECT ${TEXTS.map((column) => `CAST(${column} AS BLOB) AS ${column}`).join()} FROM events WHERE position = ?`,
    );
  }

  /** Makes the event of a row. `unparsed` is that of `SubscribeOptions`. */
  recorded(row: EventRow, unparsed = false): RecordedEvent {
    const isWhole =
      HEAD.every((column) => this.#isText(row, column)) &&
      NUMBERS.every((column) => Number.isSafeInteger(row[column]));
    if (!isWhole) return this.#garbled(row);
    const { position, stream, revision, id, type, recorded_at: recordedAtMs } = row;
    const [data, metadata] = unparsed
      ? [this.#bytesIn(row, 'data'), this.#bytesIn(row, 'metadata')]
      : [this.#parse(row, 'data'), this.#metadataIn(row)];
    return { position, stream, revision, id, type, data, metadata, recordedAtMs };
  }

  /** Reads events of a stream in order of revision. */
  ofStream(stream: string, { fromRevision = 0, limit = NO_LIMIT }: StreamRange = {}): RecordedEvent[] {
    const rows = this.#ofStream.all(stream, fromRevision, limit) as unknown as EventRow[];
    return rows.map((row) => this.recorded(row));
  }

  /** Reads the event at a position; `undefined` if it was erased. */
  at(position: Position): RecordedEvent | undefined {
    const row = this.#at.get(position) as unknown as EventRow | undefined;
    return row && this.recorded(row);
  }

  /** Reads the events at the first positions, as many as make one batch; `undefined` for an erased one. */
  batchAt(positions: readonly Position[]): ReadonlyMap<Position, RecordedEvent | undefined> {
    const events = new Map<Position, RecordedEvent | undefined>();
    let bytes = 0;
    for (const position of positions) {
      if (bytes >= MAX_BATCH_BYTES) break;
      const event = this.at(position);
      events.set(position, event);
      bytes += event === undefined ? 0 : eventBytes(event);
    }
    return events;
  }

  /** Makes the events of the first rows, as many as make one batch. It does not read further rows. */
  firstBatch(
    rows: Iterable<EventRow>,
    unparsed = false,
  ): { readonly events: RecordedEvent[]; readonly isFull: boolean } {
    const events: RecordedEvent[] = [];
    let bytes = 0;
    for (const row of rows) {
      events.push(this.recorded(row, unparsed));
      bytes += textBytes(row);
      if (bytes >= MAX_BATCH_BYTES) return { events, isFull: true };
    }
    return { events, isFull: false };
  }

  /** Makes an event of a row whose texts or numbers are not what they were. Its place is left out if that is concerned. */
  #garbled(row: EventRow): RecordedEvent {
    const { position, revision } = row;
    const isPlaced = this.#isText(row, 'stream') && Number.isSafeInteger(revision);
    const place = isPlaced ? { stream: row.stream, revision } : { stream: '', revision: 0 };
    const data = damage('it is garbled');
    return { position, ...place, id: '', type: '', data, metadata: data, recordedAtMs: 0 };
  }

  #metadataIn(row: EventRow): unknown {
    const text = row.metadata;
    if (this.#lastMetadata === undefined || this.#lastMetadata.text !== text)
      this.#lastMetadata = { text, value: this.#parse(row, 'metadata') };
    return this.#lastMetadata.value;
  }

  #bytesIn(row: EventRow, what: 'data' | 'metadata'): Uint8Array | Unreadable {
    const stored = row[what];
    if (stored instanceof Uint8Array) return stored;
    const text = this.#textIn(row, what);
    return typeof text === 'string' ? Buffer.from(text) : text;
  }

  #textIn(row: EventRow, what: 'data' | 'metadata'): string | Unreadable {
    const text = row[what];
    const fault = typeof text === 'number' ? tooLong(what, text) : undefined;
    if (fault !== undefined) return fault;
    if (typeof text !== 'string' || !this.#isText(row, what)) return damage(`${what} is not text`);
    return text;
  }

  #parse(row: EventRow, what: 'data' | 'metadata'): unknown {
    const text = this.#textIn(row, what);
    return typeof text === 'string' ? parseStored(what, text) : text;
  }

  #isText(row: EventRow, column: (typeof TEXTS)[number]): boolean {
    const text: unknown = row[column];
    if (typeof text !== 'string') return false;
    if (!text.includes(REPLACED)) return true;
    const bytes = this.#bytesAt.get(row.position)?.[column];
    return bytes instanceof Uint8Array && isUtf8(bytes);
  }
}

/** Counts the text, which is faster than `eventBytes`. The memory is at most ten times that. */
function textBytes({ data, metadata }: Pick<EventRow, 'data' | 'metadata'>): number {
  return [data, metadata].reduce(
    (sum: number, stored) => sum + (typeof stored === 'number' ? 0 : stored.length),
    0,
  );
}

function damage(reason: string): Unreadable {
  return new Unreadable(`${reason}: its bytes in events.db are damaged`, { isDamage: true });
}
