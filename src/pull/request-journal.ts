import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { world } from '../base/world.ts';
import type { RefusalCode } from './answers.ts';
import type { ListQuery } from './parameters.ts';

/** A query as it is kept. */
export interface KeptQuery extends ListQuery {
  /** The number of corporate ids, if there were too many to keep. */
  readonly corporateIds?: number;
}

/** One request that came with the secret of a known key, or the refused ones of one code, address and minute. */
export interface RequestRow {
  /** The key's prefix. */
  readonly prefix: string;
  /** The time of the newest of them. */
  readonly atMs: number;
  /** How many requests they are. */
  readonly count: number;
  /** The address of the caller; `null` if the connection had already ended, or for those of further addresses. */
  readonly address: string | null;
  readonly status: number;
  /** The code of the refusal, if the request was refused. */
  readonly code: RefusalCode | null;
  /** The number of records in the answer. */
  readonly rows: number | null;
  /** Range, filters and place of the newest page; `null` if the request was refused before they were read. */
  readonly query: KeptQuery | null;
}

export interface LastUse {
  readonly atMs: number;
  readonly address: string | null;
}

/**
 * The requests of keys, kept so that an operator can see what a leaked key was used for.
 *
 * - `append` stores rows. A row of refused requests replaces the one that this opening stored for the same key, code, address
 *   and minute. The rows of one call must be distinct in that.
 * - `requestsOf` yields the requests of one key in a range, both ends inclusive, the newest first.
 * - `lastUses` returns the newest request of each of these keys, by prefix. Keys without one are left out.
 * - `trim` removes requests before a time, except the newest of each key, and returns how many.
 */
export interface RequestJournal {
  append(rows: readonly RequestRow[]): Promise<void>;
  requestsOf(
    prefix: string,
    range: { readonly sinceMs: number; readonly untilMs: number },
  ): AsyncIterable<RequestRow>;
  lastUses(prefixes: readonly string[]): Promise<ReadonlyMap<string, LastUse>>;
  trim(beforeMs: number): Promise<number>;
  close(): Promise<void>;
}

const FLUSHED_EVERY_MS = 1_000;
/** The rows stored in one write. It takes some milliseconds, and the thread also answers requests. */
const ROWS_A_WRITE = 250;
/** More requests than a process answers while its store fails over. Further ones are counted, and lost. */
const MAX_WAITING = 50_000;
/** A longer list of corporate ids is kept as its length. */
const MAX_KEPT_IDS = 20;
const MINUTE_MS = 60_000;
/** The rows of one key and minute, but for one of each code whose address is unknown. */
const MAX_REFUSED_ROWS = 50;
/** The keys and minutes that are counted at a time, also while the store is unavailable. */
const MAX_MINUTES = 1_000;

export interface RecorderOptions {
  readonly journal: Pick<RequestJournal, 'append'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts the requests that could not be stored. */
  readonly dropped: { inc(count?: number): void };
}

/** Collects the requests of a process and stores them together, so that no request has to wait. */
export class RequestRecorder {
  readonly #options: RecorderOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #waiting: RequestRow[] = [];
  readonly #refused = new RefusedRequests();
  #storing: Promise<void> | undefined;
  #isFailing = false;
  #isStopping = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#timer = world.setInterval(() => this.#store(), FLUSHED_EVERY_MS).unref();
  }

  add(request: Omit<RequestRow, 'atMs' | 'count' | 'query'> & { readonly query: ListQuery | null }): void {
    const row = { ...request, query: kept(request.query), atMs: this.#options.clock.now(), count: 1 };
    if (row.code !== null) {
      if (!this.#refused.add(row)) this.#options.dropped.inc();
    } else if (this.#waiting.length >= MAX_WAITING) this.#options.dropped.inc();
    else this.#waiting.push(row);
  }

  /** Tries once to store the remaining requests. Those that can't be stored are counted, and lost. */
  async stop(): Promise<void> {
    world.clearInterval(this.#timer);
    await this.#storing;
    this.#isStopping = true;
    await this.#store();
    const refused = this.#refused.changed().splice(0);
    const lost = refused.reduce(
      (sum, { row, stored }) => sum + row.count - stored,
      this.#waiting.splice(0).length,
    );
    for (const counted of refused) counted.stored = counted.row.count;
    if (lost === 0) return;
    this.#options.dropped.inc(lost);
    this.#options.log.warn({ lost }, 'the last requests of keys could not be stored and are lost');
  }

  #store(): Promise<void> {
    this.#storing ??= this.#append().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  /** Stores what there is now. It is kept until it is stored. */
  async #append(): Promise<void> {
    const { log, clock } = this.#options;
    try {
      for (let left = this.#waiting.length; left > 0; ) {
        const rows = this.#waiting.slice(0, Math.min(left, ROWS_A_WRITE));
        await this.#options.journal.append(rows);
        this.#waiting.splice(0, rows.length);
        left -= rows.length;
        if (left > 0) await world.nextTurn();
      }
      await this.#appendRefused();
      this.#refused.forget(clock.now());
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'requests of keys could not be stored; retrying');
      this.#isFailing = true;
    }
  }

  async #appendRefused(): Promise<void> {
    const due = this.#isStopping ? this.#refused.changed() : this.#refused.due(this.#options.clock.now());
    for (let from = 0; from < due.length; from += ROWS_A_WRITE) {
      if (from > 0) await world.nextTurn();
      const part = due.slice(from, from + ROWS_A_WRITE);
      const rows = part.map(({ row }) => row);
      await this.#options.journal.append(rows);
      for (const [index, counted] of part.entries()) counted.stored = rows[index]?.count ?? 0;
    }
  }
}

function kept(query: ListQuery | null): KeptQuery | null {
  const ids = query?.references.corporate_id;
  if (!query || ids === undefined || ids.length <= MAX_KEPT_IDS) return query;
  return { ...query, references: { ...query.references, corporate_id: undefined }, corporateIds: ids.length };
}

/** A row that is being counted. */
interface CountedRow {
  row: RequestRow;
  /** How many of its requests are stored. */
  stored: number;
}

/**
 * Counts the refused requests of a process in one row for each key, code, address and minute, so that nobody can fill the
 * store with them. A row is stored soon after its first request, and again when its minute is over.
 */
class RefusedRequests {
  /** The rows by key and minute, then by code and address. */
  readonly #minutes = new Map<string, Map<string, CountedRow>>();

  /** Counts a request, and returns false if too many are waiting to be stored. */
  add(row: RequestRow): boolean {
    const minute = `${minuteOf(row.atMs)} ${row.prefix}`;
    let rows = this.#minutes.get(minute);
    if (rows === undefined) {
      if (this.#minutes.size >= MAX_MINUTES) return false;
      rows = new Map();
      this.#minutes.set(minute, rows);
    }
    const address = rows.has(nameOf(row)) || rows.size < MAX_REFUSED_ROWS ? row.address : null;
    const kept = { ...row, address };
    const counted = rows.get(nameOf(kept));
    if (counted === undefined) rows.set(nameOf(kept), { row: kept, stored: 0 });
    else counted.row = { ...kept, count: counted.row.count + row.count };
    return true;
  }

  /** Returns the rows that are to be stored now: new ones, and those that have changed if their minute is over. */
  due(nowMs: number): CountedRow[] {
    return this.#all().filter(
      ({ row, stored }) => stored === 0 || (stored < row.count && minuteOf(row.atMs) !== minuteOf(nowMs)),
    );
  }

  /** Returns all rows that have changed since they were stored. */
  changed(): CountedRow[] {
    return this.#all().filter(({ row, stored }) => stored < row.count);
  }

  /** Forgets the minutes that are over and stored. */
  forget(nowMs: number): void {
    for (const [minute, rows] of this.#minutes) {
      const isDone = ({ row, stored }: CountedRow) =>
        stored === row.count && minuteOf(row.atMs) !== minuteOf(nowMs);
      if ([...rows.values()].every(isDone)) this.#minutes.delete(minute);
    }
  }

  #all(): CountedRow[] {
    return [...this.#minutes.values()].flatMap((rows) => [...rows.values()]);
  }
}

/** The minute of a time, counted from the epoch. */
export function minuteOf(atMs: number): number {
  return Math.floor(atMs / MINUTE_MS);
}

function nameOf({ code, address }: RequestRow): string {
  return `${code} ${address}`;
}
