import type { PersistentSubscriptionToAll } from '@eventstore/db-client';
import type { Signal } from '../../../base/signal.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { DRIVER_BUFFER, ServerSubscription } from '../driver/server-subscription.ts';
import type { Message, ToPark } from './in-flight-events.ts';

const MAX_ACKNOWLEDGED_AT_ONCE = 500;
/** Unwanted events are acknowledged together, since a message costs both sides more than the events in it. */
const MAX_UNWANTED = 500;
const UNWANTED_MS = 200;
/** The driver (6.2.1) cancels the call to end a subscription, which drops unsent acknowledgements. So it is done later. */
const SEND_MS = 100;

export interface GroupSourceOptions {
  readonly group: string;
  /** How many unanswered events the server gives this consumer. */
  readonly bufferSize: number;
  readonly changed: Pick<Signal, 'notify'>;
}

/** One persistent subscription on the server, until it breaks. */
export class EventStoreDbGroupSource extends ServerSubscription<PersistentSubscriptionToAll> {
  readonly #unwanted: Message[] = [];
  #unwantedSinceMs = 0;
  #sentAtMs = Number.NEGATIVE_INFINITY;

  constructor({ client }: EventStoreDbConnection, { group, bufferSize, changed }: GroupSourceOptions) {
    super(client.subscribeToPersistentSubscriptionToAll(group, { bufferSize }, DRIVER_BUFFER), changed);
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

  override close(): void {
    this.ended.resolve();
    const leftMs = this.#sentAtMs + SEND_MS - performance.now();
    if (leftMs > 0) setTimeout(() => super.close(), leftMs).unref();
    else super.close();
  }

  /** Does not rely on the driver's promise, which in 6.2.1 never settles if the connection breaks during a write. */
  async #sent(sending: Promise<void>): Promise<void> {
    this.#sentAtMs = performance.now();
    try {
      await Promise.race([sending, this.ended.promise]);
    } catch (error) {
      if (this.error === undefined) throw error;
    }
  }
}
