import {
  CancelledError,
  DeadlineExceededError,
  EventStoreDBClient,
  NotLeaderError,
  TimeoutError,
  UnavailableError,
} from '@eventstore/db-client';
import { FuelError } from '../errors.ts';
import { pause } from '../pause.ts';

/** One try of one operation; the next one goes to whichever node answers then. */
const ANSWER_MS = 5_000;
const READ_PATIENCE_MS = 2_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** With the driver's ping every 10 s: when a node that froze is given up, so that another one is looked for. */
const PING_ANSWER_MS = 3_000;
/** gRPC statuses: cancelled by the server, deadline exceeded, aborted, unavailable. */
const UNAVAILABLE_CODES = new Set([1, 4, 10, 14]);
const UNAVAILABLE_TEXT = /^Failed to discover|Channel has been shut down|Server Is (?:Not Ready|Busy)/;

export interface Patience {
  /** How long one try may take; 5 s unless given. */
  readonly answerMs?: number;
  /** How long it is tried again while no node answers; 2 s unless given, 0 for a single try. */
  readonly patienceMs?: number;
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
   * patience ends, `STORE_CLOSED` after `close`, and with the driver's own errors otherwise.
   */
  async use<T>(work: Work<T>, patience: Patience = {}): Promise<T> {
    const endMs = performance.now() + (patience.patienceMs ?? READ_PATIENCE_MS);
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      this.assertOpen();
      patience.signal?.throwIfAborted();
      try {
        return await this.#once(work, patience);
      } catch (error) {
        if (!isUnavailable(error) || patience.signal?.aborted === true) throw error;
        this.assertOpen();
        if (performance.now() + pauseMs > endMs) throw unavailable(error);
      }
      await pause(pauseMs * (0.5 + Math.random()), this.closed);
    }
  }

  async close(): Promise<void> {
    if (this.closed.aborted) return;
    this.#closing.abort();
    for (const giveUp of [...this.#giveUps]) giveUp(closedError());
    await this.client.dispose();
  }

  #once<T>(work: Work<T>, { answerMs = ANSWER_MS, signal }: Patience): Promise<T> {
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

/** No node answered in time. */
export class NoAnswer extends Error {
  constructor(afterMs: number) {
    super(`no answer within ${afterMs} ms`);
    this.name = 'NoAnswer';
  }
}

/** Whether trying again, later or at another node, may help. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof FuelError) return error.code === 'STORE_UNAVAILABLE';
  if (
    error instanceof NoAnswer ||
    error instanceof UnavailableError ||
    error instanceof CancelledError ||
    error instanceof DeadlineExceededError ||
    error instanceof TimeoutError ||
    error instanceof NotLeaderError
  ) {
    return true;
  }
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? error.code : undefined; // the driver hands some errors out as gRPC made them
  return (typeof code === 'number' && UNAVAILABLE_CODES.has(code)) || UNAVAILABLE_TEXT.test(error.message);
}

function unavailable(cause: unknown): FuelError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new FuelError('STORE_UNAVAILABLE', `EventStoreDB can not be reached: ${reason}`, { cause });
}

function closedError(): FuelError {
  return new FuelError('STORE_CLOSED', 'the connection to EventStoreDB was closed');
}

/** The operator's own setting in the connection string counts. */
function withPing(url: string): string {
  if (/[?&]keep[-_]?alive[-_]?timeout=/i.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}keepAliveTimeout=${PING_ANSWER_MS}`;
}
