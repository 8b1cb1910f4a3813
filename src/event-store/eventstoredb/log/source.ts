import type { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AllStreamResolvedEvent, type AllStreamSubscription, START } from '@eventstore/db-client';
import type { Signal } from '../../../signal.ts';
import { eventBytes, MAX_BATCH_BYTES } from '../../batch-bytes.ts';
import type { Position, RecordedEvent, SubscriptionBatch } from '../../event-store.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { EndedByServer } from '../driver/errors.ts';
import { filterOf, recordedOf } from '../driver/events.ts';

/** Events that are fetched ahead of who reads them, besides their bytes; further ones wait at the server. */
const BUFFER = 1_000;
/** Events that the driver holds, which it does not bound by bytes. */
const DRIVER_BUFFER = 8;

/** What stands among the events in the buffer, so that its order to them is kept. */
interface Marker {
  readonly marker: 'caughtUp' | Position;
}

interface Fetched {
  readonly event: RecordedEvent;
  readonly bytes: number;
}

export interface SourceOptions {
  /** As in `SubscribeOptions`. */
  readonly prefixes: readonly string[];
  readonly after: Position;
  /** `live` tells its position with each event of the log, and is slow where much is stored behind `after`. */
  readonly pace: 'stored' | 'live';
  /** Rung when there may be something to take, or an error. */
  readonly wakeUp: Pick<Signal, 'notify'>;
}

/** One subscription on the server, until it breaks. */
export class EventStoreDbSource {
  readonly #subscription: AllStreamSubscription;
  /** What was taken from the driver, in its order; at most one batch by its bytes. */
  readonly #fetched: (Fetched | Marker)[] = [];
  #fetchedBytes = 0;
  #live = false;
  #error: Error | undefined;

  constructor({ client }: EventStoreDbConnection, { prefixes, after, pace, wakeUp }: SourceOptions) {
    const mark = (marker: Marker['marker']): void => {
      this.#subscription.push({ marker });
    };
    this.#subscription = client.subscribeToAll(
      {
        fromPosition: after === 0 ? START : { commit: BigInt(after), prepare: BigInt(after) },
        filter: filterOf({ prefixes, pace, checkpointReached: (_, { commit }) => mark(Number(commit)) }),
      },
      { highWaterMark: DRIVER_BUFFER },
    );
    const end = (error: Error): void => {
      this.#error ??= error;
      wakeUp.notify();
    };
    this.#subscription.on('caughtUp', () => mark('caughtUp'));
    this.#subscription.on('readable', () => {
      this.#fetch();
      wakeUp.notify();
    });
    this.#subscription.on('error', end);
    this.#subscription.on('end', () => end(new EndedByServer('the subscription')));
  }

  /** Set once it has broken; what arrived before can still be taken. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** The server has told all that there was when it was subscribed to, and it was taken. */
  get isLive(): boolean {
    return this.#live;
  }

  /**
   * Waits while each turn of the event loop brings more, up to `limit`: events arrive one by one, many to a packet,
   * and cost their reader much less in batches.
   */
  async gather(limit: number): Promise<void> {
    for (let had = 0; ; ) {
      this.#fetch();
      const has = this.#fetched.length;
      if (has === had || has >= limit) return;
      had = has;
      await nextTurn();
    }
  }

  get isDrained(): boolean {
    const { readableLength, writableLength } = this.#subscription as AllStreamSubscription & Writable;
    return this.#fetched.length + readableLength + writableLength === 0;
  }

  /** What has arrived, at most `limit` events; undefined where nothing has. `after` is where the last batch ended. */
  take(limit: number, after: Position): SubscriptionBatch | undefined {
    this.#fetch();
    const events: RecordedEvent[] = [];
    let position = after;
    let taken = 0;
    for (const next of this.#fetched) {
      if (events.length === limit) break;
      taken++;
      if ('marker' in next) {
        if (next.marker === 'caughtUp') this.#live = true;
        else position = Math.max(position, next.marker);
      } else {
        events.push(next.event);
        position = next.event.position;
        this.#fetchedBytes -= next.bytes;
      }
    }
    if (taken === 0) return undefined;
    this.#fetched.splice(0, taken);
    return { events, position, caughtUp: this.#live && this.isDrained };
  }

  /** Takes what the driver has, until it makes one batch: what is left with the driver holds up the server. */
  #fetch(): void {
    while (this.#fetched.length < BUFFER && this.#fetchedBytes < MAX_BATCH_BYTES) {
      const next: AllStreamResolvedEvent | Marker | null = this.#subscription.read();
      if (next === null) return;
      if ('marker' in next) {
        this.#fetched.push(next);
        continue;
      }
      const event = recordedOf(next);
      if (event === undefined) continue;
      const bytes = eventBytes(event);
      this.#fetched.push({ event, bytes });
      this.#fetchedBytes += bytes;
    }
  }

  close(): void {
    // Its answer is of no interest: where there is no connection there is nothing to end.
    this.#subscription.unsubscribe().catch(() => undefined);
  }
}
