import { isUtf8 } from 'node:buffer';
import type { StatementSync } from 'node:sqlite';
import type { Rest } from '../../../base/pause.ts';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import { damageOf } from '../../../event-store/damage.ts';
import type { Damage, DamageSearch } from '../../../event-store/event-store.ts';
import { MAX_BYTES, type Position, type RecordedEvent } from '../../../event-store/recorded-event.ts';
import type { Database } from '../driver/database.ts';
import { orDamaged } from '../driver/errors.ts';
import { damageIn, type EventRows, NUMBERS, PLACES, type PlaceRow, TEXTS } from './event-rows.ts';

/** How many positions one step reads. It blocks the thread for about a millisecond. */
const POSITIONS_A_STEP = 100;
const PLACES_A_STEP = 500;

const NOT_IN_INDEX = 'an index of events.db does not have it: a page is damaged';

/**
 * Does `EventStore.findDamage` up to a position. It reads each row, looks it up like readers do, and compares the rows
 * with the index of all streams, which also names the events that a damaged page has lost. Rejects with the signal's
 * reason.
 */
export async function findDamage(
  db: Database,
  rows: EventRows,
  options: Limits & Pick<DamageSearch, 'withoutTexts'>,
): Promise<readonly Damage[]> {
  const search = new Search(db, rows, options);
  await search.readRows(options);
  await search.readPlaces(options);
  return search.found();
}

interface Limits {
  readonly upTo: Position;
  readonly signal?: AbortSignal | undefined;
  readonly rest: Rest;
}

class Search {
  readonly #db: Database;
  readonly #rows: EventRows;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #found: Damage[] = [];
  /** Has a bit for each position whose row is whole. */
  #whole = new Uint8Array();

  constructor(db: Database, rows: EventRows, { withoutTexts = false }: Pick<DamageSearch, 'withoutTexts'>) {
    this.#db = db;
    this.#rows = rows;
    this.#statements = prepareStatements(db, withoutTexts);
  }

  /** Returns the damage by position, each event once. */
  found(): readonly Damage[] {
    const byPlace = new Map(this.#found.map((damage) => [keyOf(damage), damage]));
    return [...byPlace.values()].sort((a, b) => a.position - b.position);
  }

  async readRows({ upTo, signal, rest }: Limits): Promise<void> {
    this.#whole = new Uint8Array(Math.ceil((upTo + 1) / 8));
    for (let after = 0; after < upTo; after += POSITIONS_A_STEP) {
      signal?.throwIfAborted();
      const to = Math.min(after + POSITIONS_A_STEP, upTo);
      this.#db.read(() => this.#readStep(after, to));
      await rest();
    }
  }

  /** Judges the rows one by one only if SQLite does not find all of them whole, which is much faster. */
  #readStep(after: Position, to: Position): void {
    if (this.#areWhole(after, to))
      for (let position = after + 1; position <= to; position++) this.#mark(position);
    else for (let position = after + 1; position <= to; position++) this.#judge(this.#rows.at(position));
  }

  /** True if there is a whole row at each of the positions. It is also false if one was erased. */
  #areWhole(after: Position, to: Position): boolean {
    try {
      const { count, faults, texts, scanned } = this.#statements.step.get(after, to) as unknown as Step;
      // Each row must be found by its position and by a scan. A zero in a text is checked, since JSON ends there for SQLite.
      const areFound = count === to - after && scanned === count && faults === 0;
      return areFound && (texts === null || (isUtf8(texts) && !texts.includes(0)));
    } catch (error) {
      damageIn(orDamaged(this.#db.path, error));
      return false;
    }
  }

  /** Reads the index, which has a place for each event. An event without a whole row is lost. */
  async readPlaces({ upTo, signal, rest }: Limits): Promise<void> {
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
        await rest();
      }
    } catch (error) {
      // Rows that the index does not have were named when they were read.
      this.#found.push({ position: 0, event: undefined, reason: damageIn(error), isCertain: true });
    }
  }

  #judge(event: RecordedEvent | undefined): void {
    if (event === undefined) return;
    if (this.#isReported(event)) return;
    if (this.#isFound(event)) this.#mark(event.position);
    else {
      const { position, stream, revision } = event;
      const place = stream === '' ? undefined : { stream, revision };
      this.#found.push({ position, event: place, reason: NOT_IN_INDEX, isCertain: true });
    }
  }

  #mark(position: Position): void {
    this.#whole[position >> 3] = (this.#whole[position >> 3] ?? 0) | (1 << (position & 7));
  }

  /** Reports the event if it can't be read. */
  #isReported(event: RecordedEvent): boolean {
    const damage = damageOf(event);
    if (damage !== undefined) this.#found.push(damage);
    return damage !== undefined;
  }

  /** Looks for the event like readers do: by its stream and, unless it is a transaction's, by the index of the others. */
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

interface Step {
  /** The number of rows that were found by their positions. */
  readonly count: number;
  /** The number of rows in which SQLite sees a fault. */
  readonly faults: number;
  readonly texts: Uint8Array | null;
  /** The number of rows that a scan finds. */
  readonly scanned: number;
}

type Name = 'step' | 'places' | 'placed' | 'other';

function prepareStatements(db: Database, withoutTexts: boolean): Record<Name, StatementSync> {
  return {
    step: db.prepare(stepSql(withoutTexts)),
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

const IS_OF_TRANSACTION = `stream GLOB '${TRANSACTION_STREAMS}*'`;
const IS_FOUND = [
  "typeof(stream) = 'text'",
  `position IS (SELECT position FROM ${PLACES} WHERE stream = e.stream AND revision = e.revision)`,
  `(${IS_OF_TRANSACTION} OR EXISTS (
     SELECT 1 FROM events INDEXED BY other_events WHERE position = n AND NOT ${IS_OF_TRANSACTION}))`,
].join(' AND ');
const IS_READABLE = [
  ...TEXTS.map((column) => `typeof(${column}) = 'text'`),
  ...NUMBERS.map(
    (column) =>
      `typeof(${column}) = 'integer' AND ${column} BETWEEN ${Number.MIN_SAFE_INTEGER} AND ${Number.MAX_SAFE_INTEGER}`,
  ),
  ...(['data', 'metadata'] as const).map(
    (column) => `octet_length(${column}) <= ${MAX_BYTES[column]} AND json_valid(${column})`,
  ),
].join(' AND ');

/**
 * Looks up rows one by one, like readers do. It goes downwards, since upwards SQLite would go from one row to the next
 * without a look-up.
 */
function stepSql(withoutTexts: boolean): string {
  const isLeftOut = withoutTexts ? IS_OF_TRANSACTION : 'FALSE';
  return `
    WITH RECURSIVE step(n) AS (VALUES (?2) UNION ALL SELECT n - 1 FROM step WHERE n - 1 > ?1)
    SELECT count(*) AS count, total(iif(${IS_FOUND} AND (${isLeftOut} OR (${IS_READABLE})), 0, 1)) AS faults,
      CAST(group_concat(iif(${isLeftOut}, NULL, concat_ws(' ', ${TEXTS.join()})), ' ') AS BLOB) AS texts,
      (SELECT count(*) FROM events WHERE position > ?1 AND position <= ?2) AS scanned
    FROM step CROSS JOIN events AS e ON position = n`;
}
