import { TimeoutError } from '@eventstore/db-client';
import type { Log } from '../../../base/log.ts';
import { pause } from '../../../base/pause.ts';
import { Retry } from '../../../base/retry.ts';
import { Signal } from '../../../base/signal.ts';
import {
  isSelected,
  type SubscribeOptions,
  type SubscriptionBatch,
} from '../../../event-store/event-store.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { toKnownError } from '../driver/errors.ts';
import { SUBSCRIBE_BACKOFF } from '../driver/server-subscription.ts';
import { eventAt, lastShownUpTo, readHead } from './reads.ts';
import { EventStoreDbSource } from './source.ts';

const BATCH_SIZE = 500;
const HEARTBEAT_MS = 1_000;
const SLOW_READER_PAUSE_MS = 100;

export interface CatchUpOptions extends SubscribeOptions {
  readonly log: Log;
}

/**
 * Does `EventStore.subscribe`. When a connection breaks, or the server ends the subscription of a reader that is too slow
 * (`TimeoutError`), it continues after the last batch.
 */
export async function* subscribe(
  connection: EventStoreDbConnection,
  options: CatchUpOptions,
): AsyncGenerator<SubscriptionBatch, void, undefined> {
  const { prefixes, signal, log } = options;
  const changed = new Signal();
  const notify = (): void => changed.notify();
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
      const catchUp = new CatchUp(connection, { ...options, after: position }, changed);
      try {
        for await (const batch of catchUp.batches()) {
          retry.succeeded();
          position = batch.position;
          yield batch;
        }
      } catch (error) {
        if (!(error instanceof TimeoutError)) await retry.waitAfter(toKnownError(error));
        else {
          log.info(
            { prefixes, position },
            'subscription restarts after its last batch: its reader was too slow',
          );
          await pause(SLOW_READER_PAUSE_MS, until);
        }
      } finally {
        catchUp.close();
      }
    }
  } finally {
    until.removeEventListener('abort', notify);
  }
}

type Taken = Pick<SubscriptionBatch, 'events' | 'position' | 'caughtUp'>;

/**
 * Follows the log by two server subscriptions, one after the other. The first reads what is stored. Once it has caught up,
 * the second reports its position with each event of the log, even if nothing matches (0044).
 */
class CatchUp {
  readonly #connection: EventStoreDbConnection;
  readonly #options: CatchUpOptions;
  readonly #changed: Signal;
  #source: EventStoreDbSource | undefined;
  #phase: 'stored' | 'live' = 'stored';
  /** The checkpoint of `SubscriptionBatch`. The server also reports positions of records that no read shows (0049). */
  #checkpoint: Position = 0;
  #checkpointAtMs = 0;
  /** The error of a look-up for a checkpoint, which ends the subscription. */
  #error: unknown;

  constructor(connection: EventStoreDbConnection, options: CatchUpOptions, changed: Signal) {
    this.#connection = connection;
    this.#options = options;
    this.#changed = changed;
  }

  /** Ends when the signal aborts; rejects when a subscription breaks. */
  async *batches(): AsyncGenerator<SubscriptionBatch, void, undefined> {
    const { signal, after, batchSize = BATCH_SIZE } = this.#options;
    let position = after;
    let source = await this.#open(position);
    let checkAtMs = performance.now() + HEARTBEAT_MS;
    let unreported: Position | undefined;
    while (!signal.aborted) {
      this.#connection.assertOpen();
      if (this.#error !== undefined) throw this.#error;
      this.#changed.reset();
      await source.gather(batchSize);
      const wasLive = source.isLive;
      const taken = source.take(batchSize, position);
      if (taken !== undefined) {
        const batch = wasLive || !source.isLive ? taken : await this.#toReported(taken, source.reported);
        const caughtUp = batch.caughtUp && this.#phase === 'live';
        this.#moveCheckpoint(batch);
        if (batch.position > position || caughtUp) yield { ...batch, checkpoint: this.#checkpoint, caughtUp };
        position = batch.position;
        checkAtMs = performance.now() + HEARTBEAT_MS;
      } else if (source.error !== undefined) {
        throw source.error;
      } else if (source.isLive && this.#phase === 'stored') {
        this.#phase = 'live';
        source = await this.#open(position);
      } else if (performance.now() < checkAtMs) {
        await this.#changed.wait(checkAtMs - performance.now());
      } else {
        const end = await readHead(this.#connection, { retryForMs: 0, signal });
        checkAtMs = performance.now() + HEARTBEAT_MS;
        if (!source.isLive || !source.isDrained) continue; // it is enough that the node answers
        if (end <= position)
          yield { events: [], position, checkpoint: this.#checkpointAt(end), caughtUp: true };
        // Events that were recorded before the server listens move no checkpoint unless they match: subscribe after them.
        else if (end === unreported) source = await this.#open(position);
        unreported = end;
      }
    }
  }

  close(): void {
    this.#source?.close();
  }

  /** Moves the batch to the reported position if the log shows an event there that is not for this subscriber. */
  async #toReported(batch: Taken, reported: Position): Promise<Taken> {
    if (this.#phase === 'stored' || reported <= batch.position) return batch;
    const { prefixes, signal } = this.#options;
    const event = await eventAt(this.#connection, reported, { retryForMs: 0, signal });
    return event === undefined || isSelected(event.stream, prefixes)
      ? batch
      : { ...batch, position: reported };
  }

  /**
   * Moves the checkpoint to the last event of the batch. Once a second it moves it to the last event that is shown up to a
   * position without one. No batch waits for that, since it takes one round trip or two.
   */
  #moveCheckpoint({ events, position }: Pick<SubscriptionBatch, 'events' | 'position'>): void {
    const last = events.at(-1);
    if (last !== undefined) this.#checkpointAt(last.position);
    if (position <= this.#checkpoint || performance.now() < this.#checkpointAtMs + HEARTBEAT_MS) return;
    this.#checkpointAtMs = performance.now();
    this.#shownUpTo(position).then(
      (shown) => this.#checkpointAt(shown),
      (error: unknown) => {
        this.#error = error;
        this.#changed.notify();
      },
    );
  }

  #checkpointAt(position: Position): Position {
    this.#checkpointAtMs = performance.now();
    this.#checkpoint = Math.max(this.#checkpoint, position);
    return this.#checkpoint;
  }

  #shownUpTo(position: Position): Promise<Position> {
    return lastShownUpTo(this.#connection, position, { retryForMs: 0, signal: this.#options.signal });
  }

  /** Replaces the current subscription, if any. A position that is the checkpoint needs no look-up. */
  async #open(position: Position): Promise<EventStoreDbSource> {
    const { prefixes, unparsed } = this.#options;
    const phase = this.#phase;
    const isShown = position === this.#checkpoint;
    const after = isShown ? position : this.#checkpointAt(await this.#shownUpTo(position));
    this.#source?.close();
    this.#source = new EventStoreDbSource(this.#connection, {
      prefixes,
      after,
      phase,
      unparsed,
      changed: this.#changed,
    });
    return this.#source;
  }
}
