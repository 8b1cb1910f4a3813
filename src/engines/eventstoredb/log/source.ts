import type { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AllStreamResolvedEvent, type AllStreamSubscription, START } from '@eventstore/db-client';
import type { Signal } from '../../../base/signal.ts';
import { eventBytes, MAX_BATCH_BYTES } from '../../../event-store/batch-bytes.ts';
import type { SubscriptionBatch } from '../../../event-store/event-store.ts';
import type { Position, RecordedEvent } from '../../../event-store/recorded-event.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { filterOf, recordedOf } from '../driver/events.ts';
import { DRIVER_BUFFER, ServerSubscription } from '../driver/server-subscription.ts';

/** How many events are buffered here, unless their bytes reach the limit first. Others wait at the server. */
const MAX_BUFFERED = 1_000;

/**
 * A report among the buffered events. The driver (6.2.1) reports `caughtUp` and checkpoints before events that it still
 * buffers, so they are put into its buffer behind these events.
 */
interface Marker {
  readonly marker: 'caughtUp' | Position;
  /** True if the event at the position may not have been handed out: the log may end and the next event begin there. */
  readonly isBefore?: boolean;
}

interface Fetched {
  readonly event: RecordedEvent;
  readonly bytes: number;
}

export interface SourceOptions {
  /** The prefixes of `SubscribeOptions`. */
  readonly prefixes: readonly string[];
  readonly after: Position;
  /** With `live` the position follows each event of the log, which is slow while there are many events after `after`. */
  readonly phase: 'stored' | 'live';
  readonly unparsed: boolean | undefined;
  readonly changed: Pick<Signal, 'notify'>;
}

/** One subscription to the log on the server, until it breaks. */
export class EventStoreDbSource extends ServerSubscription<AllStreamSubscription> {
  /** Events and markers taken from the driver, in its order; at most the bytes of one batch. */
  readonly #fetched: (Fetched | Marker)[] = [];
  readonly #unparsed: boolean | undefined;
  #reported: Position = 0;
  #fetchedBytes = 0;
  #live = false;

  constructor(
    { client }: EventStoreDbConnection,
    { prefixes, after, phase, unparsed, changed }: SourceOptions,
  ) {
    const mark = (marker: Marker): void => {
      subscription.push(marker);
    };
    const subscription = client.subscribeToAll(
      {
        fromPosition: after === 0 ? START : { commit: BigInt(after), prepare: BigInt(after) },
        filter: filterOf({
          prefixes,
          phase,
          checkpointReached: (_, { commit, prepare }) =>
            mark({ marker: Number(commit), isBefore: prepare < commit }),
        }),
      },
      DRIVER_BUFFER,
    );
    super(subscription, changed);
    this.#unparsed = unparsed;
    subscription.on('caughtUp', () => mark({ marker: 'caughtUp' })).on('readable', () => this.#fetch());
  }

  /**
   * The last reported position, without the event there. `take` leaves it out until another one is reported, since on
   * KurrentDB it may be the end of the log where the next event begins, even while it is live (0049).
   */
  get reported(): Position {
    return this.#reported;
  }

  /** True if everything that was stored when the subscription began has been taken. */
  get isLive(): boolean {
    return this.#live;
  }

  /**
   * Waits while each turn of the event loop brings more, up to `limit`. Events of one packet arrive one by one, and reading
   * batches costs much less.
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
    const { readableLength, writableLength } = this.subscription as AllStreamSubscription & Writable;
    return this.#fetched.length + readableLength + writableLength === 0;
  }

  /** Takes what has arrived, at most `limit` events; `undefined` if nothing has. `after` is the end of the last batch. */
  take(limit: number, after: Position): Omit<SubscriptionBatch, 'checkpoint'> | undefined {
    this.#fetch();
    const events: RecordedEvent[] = [];
    let position = after;
    let taken = 0;
    for (const next of this.#fetched) {
      if (events.length === limit) break;
      taken++;
      if ('marker' in next) {
        if (next.marker === 'caughtUp') this.#live = true;
        else if (next.isBefore !== true) position = Math.max(position, next.marker);
        else {
          position = Math.max(position, this.#reported);
          this.#reported = next.marker;
        }
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

  /** Takes what the driver has, up to one batch. Events that stay in the driver's buffer make the server wait. */
  #fetch(): void {
    while (this.#fetched.length < MAX_BUFFERED && this.#fetchedBytes < MAX_BATCH_BYTES) {
      const next: AllStreamResolvedEvent | Marker | null = this.subscription.read();
      if (next === null) return;
      if ('marker' in next) {
        this.#fetched.push(next);
        continue;
      }
      const event = recordedOf(next, this.#unparsed);
      if (event === undefined) continue;
      const bytes = eventBytes(event);
      this.#fetched.push({ event, bytes });
      this.#fetchedBytes += bytes;
    }
  }
}
