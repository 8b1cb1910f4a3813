import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { world } from '../base/world.ts';
import type { RefusalCode } from './answers.ts';
import type { ListQuery } from './parameters.ts';

/** One request that came with the secret of a known key. */
export interface RequestRow {
  /** Of the key. */
  readonly prefix: string;
  readonly atMs: number;
  /** `null` where the connection had ended. */
  readonly address: string | null;
  readonly status: number;
  /** Why it was refused. */
  readonly code: RefusalCode | null;
  /** Records that it was given. */
  readonly rows: number | null;
  /** Range, filters and place of the page; `null` where it was refused before they were read. */
  readonly query: ListQuery | null;
}

export interface LastUse {
  readonly atMs: number;
  readonly address: string | null;
}

/**
 * What keys asked for, so that it can be told what a leaked one was used for.
 *
 * - `requestsOf` gives those of one key in a range, both ends inclusive: the newest first.
 * - `lastUses` names the newest of each of these keys, by prefix; keys without one are left out.
 * - `trim` removes those before a time, but for the newest of each key, and says how many.
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
/** Stored in one write, which takes some milliseconds: the thread also answers requests. */
const ROWS_A_WRITE = 250;
/** More requests than a thread answers while its store fails over; later ones are counted, and lost. */
const MAX_WAITING = 50_000;

export interface RecorderOptions {
  readonly journal: Pick<RequestJournal, 'append'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts what could not be kept. */
  readonly dropped: { inc(count?: number): void };
}

/** Collects the requests of one thread and stores them together: a request waits for nothing. */
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

  /** Stores what is left, once: what can't be is counted, and lost. */
  async stop(): Promise<void> {
    world.clearInterval(this.#timer);
    await this.#storing;
    await this.#store();
    const lost = this.#waiting.splice(0).length;
    if (lost === 0) return;
    this.#options.dropped.inc(lost);
    this.#options.log.warn({ lost }, 'what keys asked for last could not be stored, and is lost');
  }

  #store(): Promise<void> | undefined {
    if (this.#waiting.length === 0) return this.#storing;
    this.#storing ??= this.#append(this.#waiting.length).finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  /** Stores the first `count`; each waits until it is stored. */
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
      if (!this.#isFailing) log.warn({ err: error }, 'what keys asked for could not be stored; trying again');
      this.#isFailing = true;
    }
  }
}
