import { AccessDeniedError, TimeoutError } from '@eventstore/db-client';
import type { Log } from '../log.ts';
import { pause } from '../pause.ts';
import { Bell } from './commit-watch.ts';
import type { Position, SubscribeOptions, SubscriptionBatch } from './event-store.ts';
import type { EventStoreDbConnection } from './eventstoredb-connection.ts';
import { EventStoreDbOutage } from './eventstoredb-outage.ts';
import { readHead } from './eventstoredb-reads.ts';
import { EventStoreDbSource } from './eventstoredb-source.ts';

const BATCH_SIZE = 500;
const HEARTBEAT_MS = 1_000;
/** While the log grows by what does not match, its end is told so much sooner. */
const BUSY_HEARTBEAT_MS = 250;
/** After events: the server's own ones often follow. */
const AFTER_EVENTS_MS = 100;
const PROOF_MS = 5_000;

export interface CatchUpOptions extends SubscribeOptions {
  readonly log: Log;
}

/** The port's `subscribe`: one server subscription after the other, each from where the last one ended. */
export async function* subscribe(
  connection: EventStoreDbConnection,
  options: CatchUpOptions,
): AsyncGenerator<SubscriptionBatch, void, undefined> {
  const { prefixes, signal, log } = options;
  const bell = new Bell();
  const ring = (): void => bell.ring();
  const outage = new EventStoreDbOutage(log, { subscription: prefixes });
  let position = options.after;
  signal.addEventListener('abort', ring);
  connection.closed.addEventListener('abort', ring);
  try {
    while (!signal.aborted) {
      connection.assertOpen();
      const source = new EventStoreDbSource(connection, { prefixes, after: position, bell });
      try {
        for await (const batch of new CatchUp(connection, options, source, bell).from(position)) {
          outage.over();
          position = batch.position;
          yield batch;
        }
      } catch (error) {
        if (signal.aborted) return;
        connection.assertOpen();
        if (error instanceof AccessDeniedError) throw error;
        // A reader that was slow for long is cut off by the server: nobody has to know.
        if (!(error instanceof TimeoutError)) outage.began(error);
      } finally {
        source.close();
      }
      await pause(outage.nextPauseMs(), AbortSignal.any([signal, connection.closed]));
    }
  } finally {
    signal.removeEventListener('abort', ring);
    connection.closed.removeEventListener('abort', ring);
  }
}

/** Follows one server subscription. */
class CatchUp {
  readonly #connection: EventStoreDbConnection;
  readonly #options: CatchUpOptions;
  readonly #source: EventStoreDbSource;
  readonly #bell: Bell;

  constructor(
    connection: EventStoreDbConnection,
    options: CatchUpOptions,
    source: EventStoreDbSource,
    bell: Bell,
  ) {
    this.#connection = connection;
    this.#options = options;
    this.#source = source;
    this.#bell = bell;
  }

  /** Ends when the signal aborts; rejects when the subscription breaks. */
  async *from(after: Position): AsyncGenerator<SubscriptionBatch, void, undefined> {
    const { signal, batchSize = BATCH_SIZE } = this.#options;
    let position = after;
    let lookAtMs = performance.now() + HEARTBEAT_MS;
    while (!signal.aborted) {
      this.#connection.assertOpen();
      this.#bell.reset();
      const wasLive = this.#source.isLive;
      await this.#source.gather(batchSize);
      const batch = this.#source.take(batchSize, position);
      if (batch !== undefined) {
        if (batch.position > position) {
          position = batch.position;
          yield batch;
        }
        lookAtMs = performance.now() + (wasLive ? AFTER_EVENTS_MS : this.#source.isLive ? 0 : HEARTBEAT_MS);
      } else if (this.#source.error !== undefined) {
        throw this.#source.error;
      } else if (performance.now() < lookAtMs) {
        await this.#bell.wait(lookAtMs - performance.now());
      } else {
        const end = await this.#emptyUpTo(position);
        const moved = end !== undefined && end > position;
        if (end !== undefined && this.#source.isDrained) {
          position = Math.max(position, end);
          yield { events: [], position, caughtUp: true };
        }
        lookAtMs = performance.now() + (moved ? BUSY_HEARTBEAT_MS : HEARTBEAT_MS);
      }
    }
  }

  /** The log's end, where nothing that matches stands between `after` and it; rejects where no node answers. */
  async #emptyUpTo(after: Position): Promise<Position | undefined> {
    const { prefixes, signal } = this.#options;
    const end = await readHead(this.#connection, { patienceMs: 0, signal });
    if (!this.#source.isLive) return undefined; // but the node is there
    if (end <= after) return end;
    const proof = new EventStoreDbSource(this.#connection, { prefixes, after, bell: this.#bell });
    try {
      return (await this.#isEmpty(proof, after)) ? end : undefined;
    } finally {
      proof.close();
    }
  }

  /** Whether the server has told all that there was, and that was nothing. */
  async #isEmpty(proof: EventStoreDbSource, after: Position): Promise<boolean> {
    const endMs = performance.now() + PROOF_MS;
    while (this.#source.isDrained && performance.now() < endMs && !this.#options.signal.aborted) {
      this.#connection.assertOpen();
      this.#bell.reset();
      const batch = proof.take(1, after);
      if (batch !== undefined && batch.events.length > 0) return false;
      if (proof.isLive) return true;
      if (proof.error !== undefined) throw proof.error;
      await this.#bell.wait(endMs - performance.now());
    }
    return false;
  }
}
