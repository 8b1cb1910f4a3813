import type { PersistentSubscriptionToAll } from '@eventstore/db-client';
import type { Signal } from '../../../base/signal.ts';
import { type EventStoreDbConnection, endUnconfirmed } from '../driver/connection.ts';
import { storeUnavailable } from '../driver/errors.ts';
import type { Message, ToPark } from './in-flight-events.ts';

/** The driver limits its buffer by the number of events alone, so it is kept small; the others wait on the connection. */
const DRIVER_BUFFER = 8;
const MAX_ACKNOWLEDGED_AT_ONCE = 500;
/** The driver (6.2.1) ends a subscription by cancelling its call, which drops unsent acknowledgements: they get this long. */
const SEND_MS = 100;

export interface GroupSourceOptions {
  readonly group: string;
  /** How many unanswered events the server lets this consumer have. */
  readonly bufferSize: number;
  /** Notified when there may be something to take, or an error. */
  readonly changed: Pick<Signal, 'notify'>;
}

/** One persistent subscription on the server, until it breaks. */
export class EventStoreDbGroupSource {
  readonly #subscription: PersistentSubscriptionToAll;
  readonly #broken = Promise.withResolvers<void>();
  #isConfirmed = false;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #error: Error | undefined;
  readonly #stopWaiting: () => void;

  constructor({ client }: EventStoreDbConnection, { group, bufferSize, changed }: GroupSourceOptions) {
    this.#subscription = client.subscribeToPersistentSubscriptionToAll(
      group,
      { bufferSize },
      { highWaterMark: DRIVER_BUFFER },
    );
    const end = (error: Error): void => {
      this.#error ??= error;
      this.#broken.resolve();
      changed.notify();
    };
    this.#stopWaiting = endUnconfirmed(this.#subscription, end);
    this.#subscription.on('confirmation', () => {
      this.#isConfirmed = true;
      changed.notify();
    });
    this.#subscription.on('readable', () => changed.notify());
    this.#subscription.on('error', end);
    this.#subscription.on('end', () => end(storeUnavailable('the server ended the subscription')));
  }

  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  get error(): Error | undefined {
    return this.#error;
  }

  /** The next event that has arrived; undefined where there is none. */
  take(): Message | undefined {
    return this.#subscription.read() ?? undefined;
  }

  /** Resolves once it is sent, also where the connection breaks first: then the server sends the events again. */
  async ack(messages: readonly Message[]): Promise<void> {
    for (let at = 0; at < messages.length; at += MAX_ACKNOWLEDGED_AT_ONCE) {
      await this.#sent(this.#subscription.ack(...messages.slice(at, at + MAX_ACKNOWLEDGED_AT_ONCE)));
    }
  }

  /** As `ack`. */
  async park({ message, reason }: ToPark): Promise<void> {
    await this.#sent(this.#subscription.nack('park', reason, message));
  }

  close(): void {
    this.#stopWaiting();
    this.#broken.resolve();
    const unsubscribe = (): void => {
      this.#subscription.unsubscribe().catch(() => undefined); // rejects where there is no connection to end it on
    };
    const leftMs = this.#sentAtMs + SEND_MS - performance.now();
    if (leftMs > 0) setTimeout(unsubscribe, leftMs).unref();
    else unsubscribe();
  }

  /** Does not rely on the driver's promise: in 6.2.1 it never settles where the connection breaks during a write. */
  async #sent(sending: Promise<void>): Promise<void> {
    this.#sentAtMs = performance.now();
    try {
      await Promise.race([sending, this.#broken.promise]);
    } catch (error) {
      if (this.#error === undefined) throw error;
    }
  }
}
