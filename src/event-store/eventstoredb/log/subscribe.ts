import { TimeoutError } from '@eventstore/db-client';
import type { Log } from '../../../log.ts';
import { Retry } from '../../../retry.ts';
import { Signal } from '../../../signal.ts';
import type { Position, SubscribeOptions, SubscriptionBatch } from '../../event-store.ts';
import { type EventStoreDbConnection, SUBSCRIBE_BACKOFF } from '../driver/connection.ts';
import { toKnownError } from '../driver/errors.ts';
import { lastShownUpTo, readHead } from './reads.ts';
import { EventStoreDbSource } from './source.ts';

const BATCH_SIZE = 500;
/** While nothing comes. */
const HEARTBEAT_MS = 1_000;

export interface CatchUpOptions extends SubscribeOptions {
  readonly log: Log;
}

/**
 * The port's `subscribe`, across lost connections: each time from where the last one ended. A reader that was slow for
 * long is cut off by the server, and continues in the same way.
 */
export async function* subscribe(
  connection: EventStoreDbConnection,
  options: CatchUpOptions,
): AsyncGenerator<SubscriptionBatch, void, undefined> {
  const { prefixes, signal, log } = options;
  const wakeUp = new Signal();
  const notify = (): void => wakeUp.notify();
  const until = AbortSignal.any([signal, connection.closed]);
  const retry = new Retry({
    log,
    signal: until,
    component: 'subscription',
    fields: { prefixes },
    backoff: SUBSCRIBE_BACKOFF,
  });
  let position = options.after;
  until.addEventListener('abort', notify);
  try {
    while (!signal.aborted) {
      connection.assertOpen();
      const catchUp = new CatchUp(connection, { ...options, after: position }, wakeUp);
      try {
        for await (const batch of catchUp.batches()) {
          retry.succeeded();
          position = batch.position;
          yield batch;
        }
      } catch (error) {
        if (!(error instanceof TimeoutError)) await retry.waitAfter(toKnownError(error));
      } finally {
        catchUp.close();
      }
    }
  } finally {
    until.removeEventListener('abort', notify);
  }
}

/**
 * Follows the log by two server subscriptions, one after the other: one that reads what is stored, and, once that
 * has caught up, one that tells its position with each event of the log. So nothing waits for a match to know how
 * far it is.
 */
class CatchUp {
  readonly #connection: EventStoreDbConnection;
  readonly #options: CatchUpOptions;
  readonly #wakeUp: Signal;
  #source: EventStoreDbSource | undefined;
  #pace: 'stored' | 'live' = 'stored';

  constructor(connection: EventStoreDbConnection, options: CatchUpOptions, wakeUp: Signal) {
    this.#connection = connection;
    this.#options = options;
    this.#wakeUp = wakeUp;
  }

  /** Ends when the signal aborts; rejects when a subscription breaks. */
  async *batches(): AsyncGenerator<SubscriptionBatch, void, undefined> {
    const { signal, after, batchSize = BATCH_SIZE } = this.#options;
    let position = after;
    let source = await this.#open(position);
    let lookAtMs = performance.now() + HEARTBEAT_MS;
    let missing: Position | undefined;
    while (!signal.aborted) {
      this.#connection.assertOpen();
      this.#wakeUp.reset();
      await source.gather(batchSize);
      const batch = source.take(batchSize, position);
      if (batch !== undefined) {
        const caughtUp = batch.caughtUp && this.#pace === 'live';
        if (batch.position > position || caughtUp) yield { ...batch, caughtUp };
        position = batch.position;
        lookAtMs = performance.now() + HEARTBEAT_MS;
      } else if (source.error !== undefined) {
        throw source.error;
      } else if (source.isLive && this.#pace === 'stored') {
        this.#pace = 'live';
        source = await this.#open(position);
      } else if (performance.now() < lookAtMs) {
        await this.#wakeUp.wait(lookAtMs - performance.now());
      } else {
        const end = await readHead(this.#connection, { retryForMs: 0, signal });
        lookAtMs = performance.now() + HEARTBEAT_MS;
        if (!source.isLive || !source.isDrained) continue; // but the node is there
        if (end <= position) yield { events: [], position, caughtUp: true };
        // What came between its reading and its listening is told only if it matches.
        else if (end === missing) source = await this.#open(position);
        missing = end;
      }
    }
  }

  close(): void {
    this.#source?.close();
  }

  /** In the place of the subscription before, if any. A position may be that of a record which `$all` does not show. */
  async #open(position: Position): Promise<EventStoreDbSource> {
    const { prefixes, signal } = this.#options;
    const pace = this.#pace;
    const after = await lastShownUpTo(this.#connection, position, { retryForMs: 0, signal });
    this.#source?.close();
    this.#source = new EventStoreDbSource(this.#connection, { prefixes, after, pace, wakeUp: this.#wakeUp });
    return this.#source;
  }
}
