import type { Clock } from '../../../clock.ts';
import { FuelError } from '../../../errors.ts';
import type { Log } from '../../../log.ts';
import { Retry } from '../../../retry.ts';
import { Signal } from '../../../signal.ts';
import { type GroupConsumer, type GroupEvent, type RecordedEvent, STREAM_ERASED } from '../../event-store.ts';
import { type EventStoreDbConnection, SUBSCRIBE_BACKOFF } from '../driver/connection.ts';
import { NoAnswer, toKnownError } from '../driver/errors.ts';
import { isWanted, recordedOf } from '../driver/events.ts';
import { readRange } from '../log/reads.ts';
import { type Ended, EventStoreDbHandedEvents, type ServerEvent } from './handed-events.ts';
import { EventStoreDbGroupLink } from './link.ts';
import { limitsOf, notEnsured } from './settings.ts';

/** Events that a consumer holds back for a later try, besides those in its buffer; further ones are parked. */
const MAX_HELD = 1_000;
const CONFIRMATION_MS = 5_000;
/** How long the clock is not looked at, at most. */
const SLEEP_MS = 1_000;

export interface GroupConsumerOptions {
  readonly connection: EventStoreDbConnection;
  readonly group: string;
  /** As in `GroupSettings`; `undefined` where the group was not ensured. */
  readonly prefixes: readonly string[] | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly bufferSize: number;
  readonly signal: AbortSignal;
  /** Aborts when the subscriptions are closed. */
  readonly closed: AbortSignal;
}

/** One of the consumers that compete for a group's events. */
export class EventStoreDbGroupConsumer implements GroupConsumer {
  readonly #options: GroupConsumerOptions;
  readonly #wakeUp = new Signal();
  readonly #handed: EventStoreDbHandedEvents;
  readonly #ended: AbortSignal;
  readonly #retry: Retry;
  #link: EventStoreDbGroupLink | undefined;

  constructor(options: GroupConsumerOptions) {
    this.#options = options;
    this.#handed = new EventStoreDbHandedEvents(options.bufferSize);
    const { log, group, signal, closed } = options;
    this.#ended = AbortSignal.any([signal, closed]);
    this.#retry = new Retry({
      log,
      signal: this.#ended,
      component: 'consumer',
      fields: { group },
      backoff: SUBSCRIBE_BACKOFF,
    });
  }

  /** Rejects with `REFUSED` where there is no such group. */
  async *[Symbol.asyncIterator](): AsyncGenerator<GroupEvent, void, undefined> {
    const notify = (): void => this.#wakeUp.notify();
    this.#ended.addEventListener('abort', notify);
    try {
      while (!this.#options.signal.aborted) {
        this.#assertOpen();
        try {
          yield* this.#connected(this.#ended);
        } catch (error) {
          await this.#retry.waitAfter(toKnownError(error));
        }
      }
    } finally {
      this.#ended.removeEventListener('abort', notify);
    }
  }

  async ack(events: readonly GroupEvent[]): Promise<void> {
    this.#assertOpen();
    const nowMs = this.#options.clock.now();
    const deliveries = events
      .map((event) => this.#handed.end(event, nowMs))
      .filter((delivery) => delivery !== undefined);
    if (deliveries.length > 0) await this.#link?.ack(deliveries);
    this.#wakeUp.notify(); // there is room for more
  }

  async retry(
    event: GroupEvent,
    { reason, delayMs }: { readonly reason: string; readonly delayMs: number },
  ): Promise<void> {
    this.#assertOpen();
    const nowMs = this.#options.clock.now();
    await this.#park(this.#handed.hold(event, { reason, delayMs, nowMs, most: MAX_HELD }));
    this.#wakeUp.notify();
  }

  async park(event: GroupEvent, reason: string): Promise<void> {
    this.#assertOpen();
    const delivery = this.#handed.end(event, this.#options.clock.now());
    await this.#park(delivery && { delivery, reason });
    this.#wakeUp.notify();
  }

  /** Hands events out over one connection. Ends when it is asked to; rejects when the connection breaks. */
  async *#connected(ended: AbortSignal): AsyncGenerator<GroupEvent, void, undefined> {
    const { connection, group, prefixes, bufferSize, clock } = this.#options;
    if (prefixes === undefined) throw notEnsured(group);
    this.#handed.limits = await limitsOf(connection, group, ended);
    const link = new EventStoreDbGroupLink(connection, {
      group,
      bufferSize: bufferSize + MAX_HELD,
      wakeUp: this.#wakeUp,
    });
    this.#link = link;
    const confirmUntilMs = performance.now() + CONFIRMATION_MS;
    try {
      while (!ended.aborted) {
        this.#wakeUp.reset();
        await this.#receive(link, prefixes);
        const next = this.#handed.next(clock.now());
        if (next !== undefined) {
          yield next;
        } else if (link.error !== undefined) {
          throw link.error;
        } else {
          if (link.isConfirmed) this.#retry.succeeded();
          else if (performance.now() > confirmUntilMs) throw new NoAnswer(CONFIRMATION_MS);
          await this.#wakeUp.wait(Math.min(this.#handed.quietMs(clock.now()), SLEEP_MS));
        }
      }
    } finally {
      link.close();
      this.#link = undefined;
      this.#handed.disconnected();
    }
  }

  /** Takes in what has arrived, up to one batch. What the group is not for ends here. */
  async #receive(link: EventStoreDbGroupLink, prefixes: readonly string[]): Promise<void> {
    const ended: ServerEvent[] = [];
    while (!this.#handed.isFull) {
      const delivery = link.take();
      if (delivery === undefined) break;
      const event = isFor(prefixes, delivery) ? await this.#eventOf(delivery) : undefined;
      if (event === undefined || event.type === STREAM_ERASED) ended.push(delivery);
      else await this.#park(this.#handed.arrive(event, delivery, this.#options.clock.now()));
    }
    if (ended.length > 0) await link.ack(ended);
  }

  /** What was replayed comes by a link, whose position is not the event's; undefined where it was erased. */
  async #eventOf(delivery: ServerEvent): Promise<RecordedEvent | undefined> {
    const event = recordedOf(delivery);
    if (event === undefined || delivery.link === undefined) return event;
    const place = { fromRevision: event.revision, most: 1 };
    const found = await readRange(this.#options.connection, event.stream, place);
    return found === 'erased' ? undefined : found[0];
  }

  async #park(ended: Ended | undefined): Promise<void> {
    if (ended !== undefined) await this.#link?.park(ended);
  }

  #assertOpen(): void {
    this.#options.connection.assertOpen();
    if (this.#options.closed.aborted) {
      throw new FuelError('STORE_CLOSED', 'the persistent subscriptions were closed');
    }
  }
}

/** A link whose event is gone has no event. */
function isFor(prefixes: readonly string[], { event }: ServerEvent): boolean {
  return event !== undefined && isWanted(event.streamId, prefixes);
}
