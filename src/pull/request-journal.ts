import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { world } from '../base/world.ts';
import type { RefusalCode } from './answers.ts';
import type { ListQuery } from './parameters.ts';

/** One request that came with the secret of a known key. */
export interface RequestRow {
  /** The key's prefix. */
  readonly prefix: string;
  readonly atMs: number;
  /** The address of the caller; `null` if the connection had already ended. */
  readonly address: string | null;
  readonly status: number;
  /** The code of the refusal, if the request was refused. */
  readonly code: RefusalCode | null;
  /** The number of records in the answer. */
  readonly rows: number | null;
  /** Range, filters and place of the page; `null` if the request was refused before they were read. */
  readonly query: ListQuery | null;
}

export interface LastUse {
  readonly atMs: number;
  readonly address: string | null;
}

/**
 * The requests of keys, kept so that an operator can see what a leaked key was used for.
 *
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
  #storing: Promise<void> | undefined;
  #isFailing = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#timer = world.setInterval(() => this.#store(), FLUSHED_EVERY_MS).unref();
  }

  add(row: Omit<RequestRow, 'atMs'>): void {
    if (this.#waiting.length >= MAX_WAITING) this.#options.dropped.inc();
    else this.#waiting.push({ ...row, atMs: this.#options.clock.now() });
  }

  /** Tries once to store the remaining requests. Those that can't be stored are counted, and lost. */
  async stop(): Promise<void> {
    world.clearInterval(this.#timer);
    await this.#storing;
    await this.#store();
    const lost = this.#waiting.splice(0).length;
    if (lost === 0) return;
    this.#options.dropped.inc(lost);
    this.#options.log.warn({ lost }, 'the last requests of keys could not be stored and are lost');
  }

  #store(): Promise<void> | undefined {
    if (this.#waiting.length === 0) return this.#storing;
    this.#storing ??= this.#append(this.#waiting.length).finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  /** Stores the first `count` requests. They stay in the queue until they are stored. */
  async #append(count: number): Promise<void> {
    const { journal, log } = this.#options;
    try {
      for (let left = count; ; await world.nextTurn()) {
        const rows = this.#waiting.slice(0, Math.min(left, ROWS_A_WRITE));
        await journal.append(rows);
        this.#waiting.splice(0, rows.length);
        left -= rows.length;
        if (left === 0) break;
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'requests of keys could not be stored; retrying');
      this.#isFailing = true;
    }
  }
}
