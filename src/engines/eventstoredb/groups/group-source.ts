import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { PersistentSubscriptionToAll } from '@eventstore/db-client';
import type { Signal } from '../../../base/signal.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { DRIVER_BUFFER, ServerSubscription } from '../driver/server-subscription.ts';
import type { Message, ToPark } from './in-flight-events.ts';
import { statusOf } from './settings.ts';

const MAX_ACKNOWLEDGED_AT_ONCE = 500;
/** Unwanted events are acknowledged together, since a message costs both sides more than the events in it. */
const MAX_UNWANTED = 500;
const UNWANTED_MS = 200;
/** The limit for delivering what was answered last. The server sends the events again whose answers it has not read. */
const LAST_ANSWERS_MS = 5_000;

export interface GroupSourceOptions {
  readonly group: string;
  /** How many unanswered events the server gives this consumer. */
  readonly bufferSize: number;
  readonly changed: Pick<Signal, 'notify'>;
}

/** One persistent subscription on the server, until it breaks. */
export class EventStoreDbGroupSource extends ServerSubscription<PersistentSubscriptionToAll> {
  readonly #unwanted: Message[] = [];
  readonly #connection: EventStoreDbConnection;
  readonly #group: string;
  /** The answers that the driver has not written yet. */
  readonly #sending = new Set<Promise<void>>();
  #unwantedSinceMs = 0;
  #hasAnswered = false;
  /** The call to the server, once there is one. */
  #call: Writable | undefined;

  constructor(connection: EventStoreDbConnection, { group, bufferSize, changed }: GroupSourceOptions) {
    const { client } = connection;
    super(client.subscribeToPersistentSubscriptionToAll(group, { bufferSize }, DRIVER_BUFFER), changed);
    this.#connection = connection;
    this.#group = group;
    // The driver does not show its call, a duplex stream, but pipes it into the subscription.
    this.subscription.once('pipe', (call) => {
      this.#call = call as Writable;
    });
  }

  /** Returns the next event that has arrived; `undefined` if there is none. */
  take(): Message | undefined {
    return this.subscription.read() ?? undefined;
  }

  /** Keeps the id of an event that the group does not select, to acknowledge it with `ackUnwanted`. */
  leave({ link, event }: Message): void {
    const named = { event: { id: (link ?? event)?.id } } as Message;
    if (this.#unwanted.push(named) === 1) this.#unwantedSinceMs = performance.now();
  }

  /** How long unwanted events can still wait. At 0 or below they must be acknowledged. */
  get unwantedMs(): number {
    const { length } = this.#unwanted;
    if (length === 0) return Number.POSITIVE_INFINITY;
    return length < MAX_UNWANTED ? this.#unwantedSinceMs + UNWANTED_MS - performance.now() : 0;
  }

  /** Acknowledges the unwanted events like `ack`. */
  async ackUnwanted(): Promise<void> {
    await this.ack(this.#unwanted.splice(0));
  }

  /** Resolves once it is sent, or when the connection breaks. Then the server sends the events again. */
  async ack(messages: readonly Message[]): Promise<void> {
    for (let at = 0; at < messages.length; at += MAX_ACKNOWLEDGED_AT_ONCE) {
      await this.#sent(this.subscription.ack(...messages.slice(at, at + MAX_ACKNOWLEDGED_AT_ONCE)));
    }
  }

  /** Parks an event. Resolves like `ack`. */
  async park({ message, reason }: ToPark): Promise<void> {
    await this.#sent(this.subscription.nack('park', reason, message));
  }

  /** Ends the subscription once the server has been sent all answers. */
  override close(): void {
    this.ended.resolve();
    const hasMore = this.#hasAnswered && this.error === undefined;
    if (hasMore) void this.#deliverAnswers().finally(() => super.close());
    else super.close();
  }

  /**
   * The driver (6.2.1) ends a subscription by cancelling its call, which drops the answers that are not written yet, and
   * those that the server has received and not read. So they are written first, and then the server answers a question
   * on the same connection. Never rejects.
   */
  async #deliverAnswers(): Promise<void> {
    const signal = AbortSignal.timeout(LAST_ANSWERS_MS);
    const late = once(signal, 'abort');
    while (this.#sending.size > 0 && !signal.aborted)
      await Promise.race([Promise.allSettled(this.#sending), late]);
    try {
      if (this.#call === undefined) return;
      const written = once(this.#call, 'finish', { signal });
      this.#call.end();
      await written;
      await statusOf(this.#connection, this.#group, signal);
    } catch {
      // The connection has broken, or is slow: the server sends the events again.
    }
  }

  /** Does not rely on the driver's promise, which in 6.2.1 never settles if the connection breaks during a write. */
  async #sent(sending: Promise<void>): Promise<void> {
    this.#hasAnswered = true;
    this.#sending.add(sending);
    const settled = (): void => void this.#sending.delete(sending);
    sending.then(settled, settled);
    try {
      await Promise.race([sending, this.ended.promise]);
    } catch (error) {
      if (this.error === undefined) throw error;
    }
  }
}
