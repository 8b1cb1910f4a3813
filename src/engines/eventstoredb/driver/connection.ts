import type { EventStoreDBClient } from '@eventstore/db-client';
import { FuelError, isUnavailable } from '../../../base/errors.ts';
import { pause } from '../../../base/pause.ts';
import { backoff } from '../../../base/retry.ts';
import { newClient } from './client.ts';
import { storeUnavailable, toKnownError } from './errors.ts';

const TIMEOUT_MS = 5_000;
const RETRY_FOR_MS = 2_000;
const BACKOFF = { firstMs: 50, maxMs: 1_000, jitter: true } as const;

export interface UseOptions {
  /** The limit for one try; by default 5 s. */
  readonly timeoutMs?: number;
  /** How long the operation is retried while no node answers; by default 2 s, 0 for a single try. */
  readonly retryForMs?: number;
  /** Ends the wait. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** One try. When `cancelled` aborts, its result is no longer needed, and it cancels its open calls. */
export type Work<T> = (client: EventStoreDBClient, cancelled: AbortSignal) => Promise<T>;

/** The client of the process, which the adapters share. It connects with the first use, and reconnects by itself. */
export class EventStoreDbConnection {
  readonly client: EventStoreDBClient;
  readonly #closing = new AbortController();
  /** Functions that cancel the tries under way. */
  readonly #cancels = new Set<(error: Error) => void>();

  /** `url` is that of `EventStoreDbOptions`. Throws `CONFIG_INVALID`. */
  constructor(url: string) {
    this.client = newClient(url);
  }

  /** Aborts with `close`. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  assertOpen(): void {
    if (this.closed.aborted) throw closedError();
  }

  /**
   * Runs an operation, and retries it while no node answers, so it must be safe to repeat. Rejects with
   * `STORE_UNAVAILABLE` after `retryForMs`, `STORE_CLOSED` after `close`, `ITEM_REFUSED` if the server can't store the
   * event, and otherwise with the driver's own errors.
   */
  async use<T>(work: Work<T>, options: UseOptions = {}): Promise<T> {
    const { retryForMs = RETRY_FOR_MS, signal } = options;
    const endMs = performance.now() + retryForMs;
    const waits = backoff(BACKOFF);
    for (;;) {
      this.assertOpen();
      signal?.throwIfAborted();
      try {
        return await this.#tryOnce(work, options);
      } catch (error) {
        const known = toKnownError(error);
        if (!isUnavailable(known) || signal?.aborted === true) throw known;
        this.assertOpen();
        const pauseMs = waits.next().value;
        if (performance.now() + pauseMs > endMs) throw known;
        await pause(pauseMs, this.closed);
      }
    }
  }

  async close(): Promise<void> {
    if (this.closed.aborted) return;
    this.#closing.abort();
    for (const cancel of [...this.#cancels]) cancel(closedError());
    await this.client.dispose();
  }

  #tryOnce<T>(work: Work<T>, { timeoutMs = TIMEOUT_MS, signal }: UseOptions): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancelling = new AbortController();
      const settle = (): void => {
        clearTimeout(timer);
        this.#cancels.delete(cancel);
        signal?.removeEventListener('abort', onAbort);
      };
      const cancel = (error: Error): void => {
        settle();
        reject(error);
        cancelling.abort();
      };
      const onAbort = (): void => cancel(signal?.reason);
      const timer = setTimeout(() => cancel(storeUnavailable(`no answer within ${timeoutMs} ms`)), timeoutMs);
      this.#cancels.add(cancel);
      signal?.addEventListener('abort', onAbort);
      work(this.client, cancelling.signal).then(resolve, reject).finally(settle);
    });
  }
}

function closedError(): FuelError {
  return new FuelError('STORE_CLOSED', 'the connection to the event store was closed');
}
