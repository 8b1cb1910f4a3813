import { isUtf8 } from 'node:buffer';
import type { StatementSync } from 'node:sqlite';
import { FuelError } from '../../../base/errors.ts';
import { eventBytes, MAX_BATCH_BYTES } from '../../../event-store/batch-bytes.ts';
import { MAX_BYTES, tooLong } from '../../../event-store/event-bounds.ts';
import type { StreamRange } from '../../../event-store/event-store.ts';
import { type Position, type RecordedEvent, Unreadable } from '../../../event-store/recorded-event.ts';
import type { Database } from '../driver/database.ts';

/** In place of a text that is too long to be parsed stands its length, which SQLite knows without reading it. */
const bounded = (what: 'data' | 'metadata', as: string) =>
  `iif(octet_length(${what}) > ${MAX_BYTES[what]}, octet_length(${what}), ${as}) AS ${what}`;
const PLACE_AND_TYPE = 'position, stream, revision, id, type, recorded_at';
export const EVENT_COLUMNS = `${PLACE_AND_TYPE}, ${bounded('data', 'data')}, ${bounded('metadata', 'metadata')}`;
/** For those who do not parse it: bytes, which SQLite hands out without making a text of them. */
export const UNPARSED_COLUMNS = `${PLACE_AND_TYPE}, ${bounded('data', 'CAST(data AS BLOB)')}, ${bounded('metadata', 'CAST(metadata AS BLOB)')}`;
/** By stream and revision, with the position: it names the events whose own pages are damaged. */
export const PLACES = 'events INDEXED BY sqlite_autoindex_events_1';

/** As it is in the file; a damaged one may have any values but its position. */
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

/** Where an event is, as the index has it. */
export type PlaceRow = Pick<EventRow, 'position' | 'stream' | 'revision'>;

/** SQLite's word for it. */
const NO_LIMIT = -1;
/** What SQLite's text is decoded with in place of bytes that are not UTF-8. */
const REPLACED = '\ufffd';
const HEAD = ['stream', 'id', 'type'] as const;
export const TEXTS = [...HEAD, 'data', 'metadata'] as const;
export const NUMBERS = ['revision', 'recorded_at'] as const;

/** Events made of rows; those whose bytes are damaged stand in their place as `Unreadable`. */
export class EventRows {
  readonly #ofStream: StatementSync;
  readonly #placesOf: StatementSync;
  readonly #at: StatementSync;
  readonly #bytesAt: StatementSync;
  readonly #placeAt: StatementSync;
  /** The events of one step share their metadata, and nobody changes it: it is parsed once, and one value stands for all. */
  #lastMetadata: { readonly text: EventRow['metadata']; readonly value: unknown } | undefined;

  constructor(db: Database) {
    const part = 'WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?';
    this.#ofStream = db.prepare(`SELECT ${EVENT_COLUMNS} FROM events ${part}`);
    this.#placesOf = db.prepare(`SELECT position, stream, revision FROM ${PLACES} ${part}`);
    this.#at = db.prepare(`SELECT ${EVENT_COLUMNS} FROM events WHERE position = ?`);
    this.#bytesAt = db.prepare(
      `SELECT ${TEXTS.map((column) => `CAST(${column} AS BLOB) AS ${column}`).join()} FROM events WHERE position = ?`,
    );
    this.#placeAt = db.prepare(`SELECT position, stream, revision FROM ${PLACES} WHERE +position = ?`);
  }

  /** `unparsed` as in `SubscribeOptions`. */
  recorded(row: EventRow, unparsed = false): RecordedEvent {
    const isWhole =
      HEAD.every((column) => this.#isText(row, column)) &&
      NUMBERS.every((column) => Number.isSafeInteger(row[column]));
    if (!isWhole) return this.#damagedAt(row.position);
    const { position, stream, revision, id, type, recorded_at: recordedAtMs } = row;
    const [data, metadata] = unparsed
      ? [this.#bytesIn(row, 'data'), this.#bytesIn(row, 'metadata')]
      : [this.#parse(row, 'data'), this.#metadataIn(row)];
    return { position, stream, revision, id, type, data, metadata, recordedAtMs };
  }

  /** Where a page is damaged: each event that the index has, by itself. */
  ofStream(stream: string, { fromRevision = 0, limit = NO_LIMIT }: StreamRange = {}): RecordedEvent[] {
    let rows: EventRow[];
    try {
      rows = this.#ofStream.all(stream, fromRevision, limit) as unknown as EventRow[];
    } catch (error) {
      damageIn(error);
      const places = this.#placesOf.all(stream, fromRevision, limit) as unknown as PlaceRow[];
      return places.map((place) => this.atPlace(place));
    }
    return rows.map((row) => this.recorded(row));
  }

  /** The event at a place that the index has. */
  atPlace(place: PlaceRow, unparsed?: boolean): RecordedEvent {
    const found = this.#rowAt(place.position);
    return typeof found === 'object' ? this.recorded(found, unparsed) : damagedEvent(place, found);
  }

  /** `undefined` where there is none: it was erased. */
  at(position: Position): RecordedEvent | undefined {
    const found = this.#rowAt(position);
    if (typeof found === 'object') return this.recorded(found);
    return found === MISSING ? undefined : this.#damagedAt(position);
  }

  /** The events at as many of the first positions as make one batch; `undefined` for one that was erased. */
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

  /** The events of as many rows as make one batch; further ones are not read. */
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

  #rowAt(position: Position): EventRow | string {
    try {
      return (this.#at.get(position) as unknown as EventRow | undefined) ?? MISSING;
    } catch (error) {
      return damageIn(error);
    }
  }

  #damagedAt(position: Position): RecordedEvent {
    const place = orDamage(() => this.#placeAt.get(position) as unknown as PlaceRow | undefined);
    return damagedEvent(place ?? { position, stream: '', revision: 0 }, GARBLED);
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
    if (typeof text !== 'string') return text;
    try {
      return JSON.parse(text);
    } catch {
      return new Unreadable(`${what} is not JSON`); // the error's own message quotes personal data
    }
  }

  #isText(row: EventRow, column: (typeof TEXTS)[number]): boolean {
    const text: unknown = row[column];
    if (typeof text !== 'string') return false;
    if (!text.includes(REPLACED)) return true;
    const bytes = orDamage(() => this.#bytesAt.get(row.position))?.[column];
    return bytes instanceof Uint8Array && isUtf8(bytes);
  }
}

const MISSING = 'it is missing';
const GARBLED = 'it is garbled';

/** Counts the text, which is quicker than `eventBytes`; memory takes ten times that at most. */
export function textBytes({ data, metadata }: Pick<EventRow, 'data' | 'metadata'>): number {
  return [data, metadata].reduce(
    (sum: number, stored) => sum + (typeof stored === 'number' ? 0 : stored.length),
    0,
  );
}

/** What stands for an event of which the index alone is left. */
function damagedEvent({ position, stream, revision }: PlaceRow, reason: string): RecordedEvent {
  const event = { position, stream, revision, id: '', type: '' };
  return { ...event, data: damage(reason), metadata: damage(reason), recordedAtMs: 0 };
}

function damage(reason: string): Unreadable {
  return new Unreadable(`${reason}: its bytes in events.db are damaged`, { isDamage: true });
}

/** `undefined` where the pages that it reads are damaged too. */
function orDamage<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    damageIn(error);
    return undefined;
  }
}

/** What SQLite says of a damaged page; rethrows any other error. */
export function damageIn(error: unknown): string {
  if (!(error instanceof FuelError) || error.code !== 'STORE_DAMAGED') throw error;
  return error.cause instanceof Error ? error.cause.message : error.message;
}
