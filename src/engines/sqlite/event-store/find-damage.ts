import { isUtf8 } from 'node:buffer';
import type { StatementSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import { MAX_BYTES } from '../../../event-store/event-bounds.ts';
import type { Damage } from '../../../event-store/event-store.ts';
import {
  isDamaged,
  type Position,
  type RecordedEvent,
  Unreadable,
} from '../../../event-store/recorded-event.ts';
import type { Database } from '../driver/database.ts';
import { orDamaged } from '../driver/errors.ts';
import { damageIn, type EventRows, NUMBERS, PLACES, type PlaceRow, TEXTS } from './event-rows.ts';

/** A step blocks the thread for about a millisecond. */
const POSITIONS_A_STEP = 100;
const PLACES_A_STEP = 500;

const NOT_IN_INDEX = 'an index of events.db does not have it: a page is damaged';

/**
 * As `EventStore.findDamage`, up to a position: reads each row, looks it up as readers do, and compares the rows with
 * the index of all streams, which also names what a damaged page has lost. Rejects with the signal's reason.
 */
export async function findDamage(
  db: Database,
  rows: EventRows,
  options: { readonly upTo: Position; readonly signal: AbortSignal | undefined },
): Promise<readonly Damage[]> {
  const search = new DamageSearch(db, rows);
  await search.readRows(options);
  await search.readPlaces(options);
  return search.found();
}

type Limits = Parameters<typeof findDamage>[2];

class DamageSearch {
  readonly #db: Database;
  readonly #rows: EventRows;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #found: Damage[] = [];
  /** A bit for each position whose row was read and is whole. */
  #whole = new Uint8Array();

  constructor(db: Database, rows: EventRows) {
    this.#db = db;
    this.#rows = rows;
    this.#statements = prepareStatements(db);
  }

  /** By position, each event once. */
  found(): readonly Damage[] {
    const byPlace = new Map(this.#found.map((damage) => [keyOf(damage), damage]));
    return [...byPlace.values()].sort((a, b) => a.position - b.position);
  }

  async readRows({ upTo, signal }: Limits): Promise<void> {
    this.#whole = new Uint8Array(Math.ceil((upTo + 1) / 8));
    for (let after = 0; after < upTo; after += POSITIONS_A_STEP) {
      signal?.throwIfAborted();
      const to = Math.min(after + POSITIONS_A_STEP, upTo);
      this.#db.read(() => this.#readStep(after, to));
      await nextTurn();
    }
  }

  /** Judges the rows one by one only where SQLite does not find all of them whole, which takes it a fraction of the time. */
  #readStep(after: Position, to: Position): void {
    const whole = this.#wholeRows(after, to);
    if (whole !== undefined) for (const position of whole) this.#mark(position);
    else for (let position = after + 1; position <= to; position++) this.#judge(this.#rows.at(position));
  }

  /** The positions of the rows; `undefined` where one of them may be damaged. */
  #wholeRows(after: Position, to: Position): readonly Position[] | undefined {
    const { step, positions } = this.#statements;
    try {
      const { count, faults, texts } = step.get(after, to) as unknown as Step;
      // SQLite takes a zero for the end of JSON.
      if (faults > 0 || (texts !== null && !(isUtf8(texts) && !texts.includes(0)))) return undefined;
      const found = positions.all(after, to).map(({ position }) => position as Position);
      return found.length === count ? found : undefined; // each was found by its position too
    } catch (error) {
      damageIn(orDamaged(this.#db.path, error));
      return undefined;
    }
  }

  /** The index has a place for each event: one without a whole row was lost. */
  async readPlaces({ upTo, signal }: Limits): Promise<void> {
    const { places } = this.#statements;
    let last = { stream: '', revision: 0 };
    try {
      for (;;) {
        signal?.throwIfAborted();
        const step = this.#db.read(() => {
          const some = places.all(last.stream, last.revision, PLACES_A_STEP) as unknown as PlaceRow[];
          for (const place of some) if (place.position <= upTo) this.#judgePlace(place);
          return some;
        });
        const end = step.at(-1);
        if (end === undefined || step.length < PLACES_A_STEP) return;
        last = end;
        await nextTurn();
      }
    } catch (error) {
      // The rows that are found nowhere in it were named when they were read.
      this.#found.push({ position: 0, event: undefined, reason: damageIn(error), isCertain: true });
    }
  }

  #judge(event: RecordedEvent | undefined): void {
    if (event === undefined) return;
    if (this.#isReported(event)) return;
    if (this.#isFound(event)) this.#mark(event.position);
    else this.#report(event, { reason: NOT_IN_INDEX, isCertain: true });
  }

  #mark(position: Position): void {
    this.#whole[position >> 3] = (this.#whole[position >> 3] ?? 0) | (1 << (position & 7));
  }

  /** Reports the event if it can't be read. */
  #isReported(event: RecordedEvent): boolean {
    const unreadable = [event.data, event.metadata].find((part) => part instanceof Unreadable);
    if (unreadable !== undefined)
      this.#report(event, { reason: unreadable.reason, isCertain: isDamaged(event) });
    return unreadable !== undefined;
  }

  #report({ position, stream, revision }: RecordedEvent, why: Pick<Damage, 'reason' | 'isCertain'>): void {
    this.#found.push({ position, event: stream === '' ? undefined : { stream, revision }, ...why });
  }

  /** As readers look for it: by its stream and, of what is no transaction, by the index of the others. */
  #isFound({ position, stream, revision }: RecordedEvent): boolean {
    const { placed, other } = this.#statements;
    try {
      if (placed.get(stream, revision)?.position !== position) return false;
      return stream.startsWith(TRANSACTION_STREAMS) || other.get(position) !== undefined;
    } catch (error) {
      damageIn(error);
      return false;
    }
  }

  #judgePlace(place: PlaceRow): void {
    const isWhole = ((this.#whole[place.position >> 3] ?? 0) & (1 << (place.position & 7))) !== 0;
    if (!isWhole) this.#isReported(this.#rows.atPlace(place));
  }
}

function keyOf({ position, event }: Damage): string {
  return event === undefined ? `${position}` : `${event.stream}@${event.revision}`;
}

/** How many rows there are, of how many SQLite sees a fault, and the texts of all. */
interface Step {
  readonly count: number;
  readonly faults: number;
  readonly texts: Uint8Array | null;
}

type Name = 'step' | 'positions' | 'places' | 'placed' | 'other';

function prepareStatements(db: Database): Record<Name, StatementSync> {
  return {
    step: db.prepare(STEP),
    positions: db.prepare('SELECT position FROM events WHERE position > ? AND position <= ?'),
    places: db.prepare(
      `SELECT position, stream, revision FROM ${PLACES} WHERE (stream, revision) > (?, ?)
       ORDER BY stream, revision LIMIT ?`,
    ),
    placed: db.prepare(`SELECT position FROM ${PLACES} WHERE stream = ? AND revision = ?`),
    other: db.prepare(
      `SELECT 1 FROM events INDEXED BY other_events WHERE position = ? AND stream NOT GLOB '${TRANSACTION_STREAMS}*'`,
    ),
  };
}

const IS_WHOLE = [
  ...TEXTS.map((column) => `typeof(${column}) = 'text'`),
  ...NUMBERS.map(
    (column) =>
      `typeof(${column}) = 'integer' AND ${column} BETWEEN ${Number.MIN_SAFE_INTEGER} AND ${Number.MAX_SAFE_INTEGER}`,
  ),
  ...(['data', 'metadata'] as const).map(
    (column) => `octet_length(${column}) <= ${MAX_BYTES[column]} AND json_valid(${column})`,
  ),
  `position IS (SELECT position FROM ${PLACES} WHERE stream = e.stream AND revision = e.revision)`,
  `(stream GLOB '${TRANSACTION_STREAMS}*' OR EXISTS (
     SELECT 1 FROM events INDEXED BY other_events WHERE position = n AND stream NOT GLOB '${TRANSACTION_STREAMS}*'))`,
].join(' AND ');

/** Rows are looked up one by one, as readers do; downwards, since SQLite would go from one to the next without a look-up. */
const STEP = `
  WITH RECURSIVE step(n) AS (VALUES (?2) UNION ALL SELECT n - 1 FROM step WHERE n - 1 > ?1)
  SELECT count(*) AS count, total(iif(${IS_WHOLE}, 0, 1)) AS faults,
    CAST(group_concat(concat_ws(' ', ${TEXTS.join()}), ' ') AS BLOB) AS texts
  FROM step CROSS JOIN events AS e ON position = n`;
