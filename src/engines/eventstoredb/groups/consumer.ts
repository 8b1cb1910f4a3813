import { PersistentSubscriptionDoesNotExistError } from '@eventstore/db-client';
import type { Clock } from '../../../base/clock.ts';
import { FuelError, reasonOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { Retry } from '../../../base/retry.ts';
import { Signal } from '../../../base/signal.ts';
import {
  type ConsumeOptions,
  type GroupConsumer,
  type GroupEvent,
  type GroupSettings,
  isSelected,
} from '../../../event-store/event-store.ts';
import { isErasure, type RecordedEvent } from '../../../event-store/recorded-event.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { toKnownError } from '../driver/errors.ts';
import { recordedOf } from '../driver/events.ts';
import { SUBSCRIBE_BACKOFF } from '../driver/server-subscription.ts';
import { readRange } from '../log/reads.ts';
import { EventStoreDbGroupSource } from './group-source.ts';
import { EventStoreDbInFlightEvents, MAX_DELAYED, type Message, type ToPark } from './in-flight-events.ts';
import { ensureGroup } from './settings.ts';

/** How often the clock is read at least, since it may not run in real time. */
const MAX_WAIT_MS = 1_000;

export interface GroupConsumerOptions extends ConsumeOptions {
  readonly connection: EventStoreDbConnection;
  readonly group: string;
  readonly settings: GroupSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts when the subscriptions are closed. */
  readonly closed: AbortSignal;
}

/** One of the consumers that compete for a group's events. */
export class EventStoreDbGroupConsumer implements GroupConsumer {
  readonly #options: GroupConsumerOptions;
  readonly #changed = new Signal();
  readonly #inFlight: EventStoreDbInFlightEvents;
  readonly #ended: AbortSignal;
  readonly #retry: Retry;
  #source: EventStoreDbGroupSource | undefined;

  constructor(options: GroupConsumerOptions) {
    this.#options = options;
    this.#inFlight = new EventStoreDbInFlightEvents(options.bufferSize, options.settings);
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

  async *[Symbol.asyncIterator](): AsyncGenerator<GroupEvent, void, undefined> {
    const notify = (): void => this.#changed.notify();
    this.#ended.addEventListener('abort', notify);
    try {
      while (!this.#options.signal.aborted) {
        this.#assertOpen();
        try {
          yield* this.#connected();
        } catch (error) {
          await this.#afterBreak(error);
        }
      }
    } finally {
      this.#ended.removeEventListener('abort', notify);
    }
  }

  async ack(events: readonly GroupEvent[]): Promise<void> {
    this.#assertOpen();
    const nowMs = this.#options.clock.now();
    const messages = events
      .map((event) => this.#inFlight.end(event, nowMs))
      .filter((message) => message !== undefined);
    if (messages.length > 0) await this.#source?.ack(messages);
    this.#changed.notify(); // the consumer can take more
  }

  async retry(
    event: GroupEvent,
    { reason, delayMs }: { readonly reason: string; readonly delayMs: number },
  ): Promise<void> {
    this.#assertOpen();
    const nowMs = this.#options.clock.now();
    await this.#park(this.#inFlight.delay(event, { reason, delayMs, nowMs }));
    this.#changed.notify();
  }

  async park(event: GroupEvent, reason: string): Promise<void> {
    this.#assertOpen();
    const message = this.#inFlight.end(event, this.#options.clock.now());
    await this.#park(message && { message, reason });
    this.#changed.notify();
  }

  /** Makes the group again if somebody has deleted it, or waits before the next try. */
  async #afterBreak(error: unknown): Promise<void> {
    const { connection, group, settings, log, onState } = this.#options;
    try {
      if (!(error instanceof PersistentSubscriptionDoesNotExistError)) throw error;
      await ensureGroup(connection, group, settings);
      const fact = 'consumer continues: its group had been deleted on the event store, and was made again';
      log.warn({ group }, `${fact}; it hands out the whole log once more`);
    } catch (broken) {
      const known = toKnownError(broken);
      onState?.(reasonOf(known));
      await this.#retry.waitAfter(known);
    }
  }

  /** Hands out events of one subscription. Ends when `signal` or `closed` aborts; rejects when the subscription breaks. */
  async *#connected(): AsyncGenerator<GroupEvent, void, undefined> {
    const { connection, group, bufferSize, clock } = this.#options;
    const source = new EventStoreDbGroupSource(connection, {
      group,
      bufferSize: bufferSize + MAX_DELAYED,
      changed: this.#changed,
    });
    this.#source = source;
    let isTold = false;
    try {
      while (!this.#ended.aborted) {
        this.#changed.reset();
        await this.#receive(source);
        if (source.isConfirmed && !isTold) {
          isTold = true;
          this.#retry.succeeded();
          this.#options.onState?.(undefined);
        }
        const next = this.#inFlight.next(clock.now());
        if (next !== undefined || source.unwantedMs <= 0) await source.ackUnwanted(); // handling it may take long
        if (next !== undefined) {
          yield next;
        } else if (source.error !== undefined) {
          throw source.error;
        } else {
          const waitMs = Math.min(this.#inFlight.idleMs(clock.now()), source.unwantedMs, MAX_WAIT_MS);
          await this.#changed.wait(Math.max(1, waitMs));
        }
      }
      await source.ackUnwanted();
    } finally {
      source.close();
      this.#source = undefined;
      this.#inFlight.disconnected();
    }
  }

  /** Receives up to one batch. It leaves events that the group does not select, since the group has no filter (0049). */
  async #receive(source: EventStoreDbGroupSource): Promise<void> {
    const { clock, settings } = this.#options;
    while (!this.#inFlight.isFull) {
      const message = source.take();
      if (message === undefined) break;
      const event = isFor(settings.prefixes, message) ? await this.#eventOf(message) : undefined;
      if (event === undefined || isErasure(event)) source.leave(message);
      else this.#inFlight.receive(event, message, clock.now());
    }
  }

  /**
   * Returns the event of a message; `undefined` if it was erased. A replayed event comes with its link and without its
   * own position in `$all`, so it is read from its stream.
   */
  async #eventOf(message: Message): Promise<RecordedEvent | undefined> {
    const event = recordedOf(message);
    if (event === undefined || message.link === undefined) return event;
    const place = { fromRevision: event.revision, limit: 1 };
    const found = await readRange(this.#options.connection, event.stream, place);
    return found === 'erased' ? undefined : found[0];
  }

  async #park(toPark: ToPark | undefined): Promise<void> {
    if (toPark !== undefined) await this.#source?.park(toPark);
  }

  #assertOpen(): void {
    this.#options.connection.assertOpen();
    if (this.#options.closed.aborted) {
      throw new FuelError('STORE_CLOSED', 'the persistent subscriptions were closed');
    }
  }
}

/** True if the group selects the event. A link whose event was erased comes without the event. */
function isFor(prefixes: readonly string[], { event }: Message): boolean {
  return event !== undefined && isSelected(event.streamId, prefixes);
}
