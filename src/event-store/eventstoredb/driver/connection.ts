import { EventStoreDBClient } from '@eventstore/db-client';
import { FuelError, isUnavailable } from '../../../errors.ts';
import { pause } from '../../../pause.ts';
import { Backoff } from '../../../retry.ts';
import { NoAnswer, toKnownError } from './errors.ts';

/** One try of one operation; the next one goes to whichever node answers then. */
const ANSWER_MS = 5_000;
const READ_RETRY_MS = 2_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;
/** With the driver's ping every 10 s: when a node that froze is given up, so that another one is looked for. */
const PING_ANSWER_MS = 3_000;

/** Before a subscription is begun again. */
export const SUBSCRIBE_BACKOFF = { maxMs: 5_000, jitter: true } as const;

export interface UseOptions {
  /** How long one try may take; 5 s unless given. */
  readonly answerMs?: number;
  /** How long it is tried again while no node answers; 2 s unless given, 0 for a single try. */
  readonly retryForMs?: number;
  /** Ends the wait: the call rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Work on the client; what it still has open when `givenUp` aborts is to be cancelled. */
export type Work<T> = (client: EventStoreDBClient, givenUp: AbortSignal) => Promise<T>;

/** One client of the process, shared by the adapters. It connects with the first use, and again when it must. */
export class EventStoreDbConnection {
  readonly client: EventStoreDBClient;
  readonly #closing = new AbortController();
  readonly #giveUps = new Set<(error: Error) => void>();

  /** `url`: `esdb://…` or `esdb+discover://…`; credentials, TLS and the nodes come from it. */
  constructor(url: string) {
    this.client = EventStoreDBClient.connectionString(withPing(url));
  }

  /** Aborts with `close`. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  assertOpen(): void {
    if (this.closed.aborted) throw closedError();
  }

  /**
   * Runs an operation, again where no node answered it: it must bear that. Rejects with `STORE_UNAVAILABLE` once
   * patience ends, `STORE_CLOSED` after `close`, `ITEM_REFUSED` where the server can't take what it is given, and
   * with the driver's own errors otherwise.
   */
  async use<T>(work: Work<T>, options: UseOptions = {}): Promise<T> {
    const endMs = performance.now() + (options.retryForMs ?? READ_RETRY_MS);
    const backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS, jitter: true });
    for (;;) {
      this.assertOpen();
      options.signal?.throwIfAborted();
      let pauseMs: number;
      try {
        return await this.#once(work, options);
      } catch (error) {
        const known = toKnownError(error);
        if (!isUnavailable(known) || options.signal?.aborted === true) throw known;
        this.assertOpen();
        pauseMs = backoff.nextMs();
        if (performance.now() + pauseMs > endMs) throw known;
      }
      await pause(pauseMs, this.closed);
    }
  }

  async close(): Promise<void> {
    if (this.closed.aborted) return;
    this.#closing.abort();
    for (const giveUp of [...this.#giveUps]) giveUp(closedError());
    await this.client.dispose();
  }

  #once<T>(work: Work<T>, { answerMs = ANSWER_MS, signal }: UseOptions): Promise<T> {
    return new Promise((resolve, reject) => {
      const givenUp = new AbortController();
      const settle = (): void => {
        clearTimeout(timer);
        this.#giveUps.delete(giveUp);
        signal?.removeEventListener('abort', onAbort);
      };
      const giveUp = (error: Error): void => {
        settle();
        reject(error);
        givenUp.abort();
      };
      const onAbort = (): void => giveUp(signal?.reason);
      const timer = setTimeout(() => giveUp(new NoAnswer(answerMs)), answerMs);
      this.#giveUps.add(giveUp);
      signal?.addEventListener('abort', onAbort);
      work(this.client, givenUp.signal).then(resolve, reject).finally(settle);
    });
  }
}

function closedError(): FuelError {
  return new FuelError('STORE_CLOSED', 'the connection to EventStoreDB was closed');
}

/** The operator's own setting in the connection string counts. */
function withPing(url: string): string {
  if (/[?&]keep[-_]?alive[-_]?timeout=/i.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}keepAliveTimeout=${PING_ANSWER_MS}`;
}
