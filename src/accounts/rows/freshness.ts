import { type Clock, steadyClock } from '../../base/clock.ts';
import { isUnavailable } from '../../base/errors.ts';
import { pause } from '../../base/pause.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Tables } from '../../tables/tables.ts';
import { isAtEnd } from './progress.ts';
import { readProgress } from './read-rows.ts';
import type { ProgressRow } from './tables.ts';

const LOOKS_EVERY_MS = 1_000;
/** Until the rows are fresh for the first time, it looks this often. */
const FIRST_LOOKS_EVERY_MS = 20;
/** A server that takes over may have a clock that is this far behind. */
const CLOCK_SKEW_MS = 1_000;

export interface FreshnessOptions {
  readonly tables: Pick<Tables, 'get' | 'now'>;
  readonly store: EventStore;
  /** The clock of the day, with which a store is named that has no name yet. */
  readonly clock: Clock;
  readonly steady?: Clock;
  readonly maxAgeMs: number;
}

/**
 * Knows whether the rows of accounts are fresh enough to judge access by them, from one small read a second, which all requests
 * share. Rows that were complete too long ago must not be used: a key may have been switched off since.
 */
export class RowsFreshness {
  readonly #options: FreshnessOptions;
  readonly #steady: Clock;
  /** Up to when the rows are known to be complete, by the steady clock. */
  #completeAtMs = Number.NEGATIVE_INFINITY;
  #known: ProgressRow | undefined;
  /** The progress at the first look. It may be from before a restart of the machine, or of another log. */
  #first: { readonly completeAt: number | null } | undefined;

  constructor(options: FreshnessOptions) {
    this.#options = options;
    this.#steady = options.steady ?? steadyClock;
  }

  get isFresh(): boolean {
    return this.#steady.now() - this.#completeAtMs <= this.#options.maxAgeMs;
  }

  /** True, or why the rows may not be used. */
  get condition(): true | string {
    if (this.isFresh) return true;
    if (this.#known === undefined) return 'the rows of accounts have not been read yet';
    if (this.#known.complete_at === null)
      return `the rows of accounts are being made: they are at position ${this.#known.position}`;
    return 'the rows of accounts have not heard from the event store for too long';
  }

  /** Looks until the signal aborts. While a store is unavailable the rows age. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#tryToLook(signal);
      await pause(this.isFresh ? LOOKS_EVERY_MS : FIRST_LOOKS_EVERY_MS, signal);
    }
  }

  /** Looks until the rows are fresh, or the signal aborts. */
  async untilFresh(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#tryToLook(signal);
      if (this.isFresh) return;
      await pause(FIRST_LOOKS_EVERY_MS, signal);
    }
  }

  async #tryToLook(signal: AbortSignal): Promise<void> {
    try {
      await this.#look();
    } catch (error) {
      if (!isUnavailable(error) && !signal.aborted) throw error;
    }
  }

  async #look(): Promise<void> {
    const { tables } = this.#options;
    const askedAtMs = this.#steady.now();
    const [progress, nowMs] = await Promise.all([readProgress(tables), tables.now()]);
    this.#known = progress;
    if (progress === undefined) return;
    this.#first ??= { completeAt: progress.complete_at };
    const { complete_at } = progress;
    const isNew = complete_at !== null && complete_at !== this.#first.completeAt;
    if (isNew && complete_at <= nowMs + CLOCK_SKEW_MS)
      this.#completeAtMs = Math.max(this.#completeAtMs, askedAtMs - Math.max(0, nowMs - complete_at));
    if (!this.isFresh && (await this.#isAtEnd(progress))) this.#completeAtMs = askedAtMs;
  }

  /** Only a log on this machine is asked, so that pulls are answered even if its disk is full and no progress can be written. */
  async #isAtEnd(progress: ProgressRow): Promise<boolean> {
    const { store } = this.#options;
    if (store.end === undefined || progress.complete_at === null) return false;
    return isAtEnd(progress, this.#options);
  }
}
