import { steadyClock } from './clock.ts';
import { isUnavailable, reasonOf } from './errors.ts';
import type { Log } from './log.ts';
import { pause } from './pause.ts';
import { world } from './world.ts';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;

export interface BackoffOptions {
  readonly firstMs?: number;
  readonly maxMs?: number;
  /** Shortens each wait by up to half, so that many processes do not return to one server at once. */
  readonly jitter?: boolean;
}

/** The waits between tries in milliseconds, each twice as long as the one before, up to a limit. */
export function* backoff(options: BackoffOptions = {}): Generator<number, never> {
  const { firstMs = FIRST_PAUSE_MS, maxMs = MAX_PAUSE_MS, jitter = false } = options;
  for (let ms = firstMs; ; ms = Math.min(2 * ms, maxMs)) yield jitter ? ms * (0.5 + world.random() / 2) : ms;
}

export interface RetryOptions {
  readonly log: Log;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
  /** The name of the waiting part in log lines, such as `projector`. */
  readonly component: string;
  /** Further fields of its log lines. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly backoff?: BackoffOptions;
  /** Rethrows the error once a store has been unavailable for this long. By default it waits without limit. */
  readonly maxUnavailableMs?: number;
  /** Replaces the real wait in tests. Resolves early when the signal aborts. */
  readonly sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/** The retries of one part that needs a store: waits while the store is unavailable, and logs the start and the end. */
export class Retry {
  readonly #options: RetryOptions;
  #waits: Iterator<number, never>;
  #sinceMs: number | undefined;

  constructor(options: RetryOptions) {
    this.#options = options;
    this.#waits = backoff(options.backoff);
  }

  /** Notes that the store has answered. */
  succeeded(): void {
    if (this.#sinceMs === undefined) return;
    this.#waits = backoff(this.#options.backoff);
    const { log, component, fields } = this.#options;
    const unavailable_ms = Math.round(steadyClock.now() - this.#sinceMs);
    this.#sinceMs = undefined;
    log.info({ ...fields, unavailable_ms }, `${component} continues: the store is available again`);
  }

  /** Waits until the next retry is due. Rethrows the error unless a store is unavailable. */
  async waitAfter(error: unknown): Promise<void> {
    const { log, signal, component, fields, maxUnavailableMs = Infinity, sleep = pause } = this.#options;
    if (signal.aborted) return;
    const isOver = this.#sinceMs !== undefined && steadyClock.now() - this.#sinceMs > maxUnavailableMs;
    if (isOver || !isUnavailable(error)) throw error;
    if (this.#sinceMs === undefined) {
      this.#sinceMs = steadyClock.now();
      log.warn({ ...fields, reason: reasonOf(error) }, `${component} waits: a store is unavailable`);
    }
    await sleep(this.#waits.next().value, signal);
  }
}

/**
 * Does the work, and retries it while a store is unavailable. Long work calls `available` when the store has answered.
 * Resolves with `undefined` if the signal aborts first; rejects with any other error.
 */
export async function retryWhileUnavailable<T>(
  work: (available: () => void) => Promise<T>,
  options: RetryOptions,
): Promise<T | undefined> {
  const retry = new Retry(options);
  const available = (): void => retry.succeeded();
  while (!options.signal.aborted) {
    try {
      const done = await work(available);
      available();
      return done;
    } catch (error) {
      await retry.waitAfter(error);
    }
  }
  return undefined;
}
