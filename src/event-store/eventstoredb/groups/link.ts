import type { PersistentSubscriptionToAll } from '@eventstore/db-client';
import type { Signal } from '../../../signal.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { EndedByServer } from '../driver/errors.ts';
import type { ServerEvent } from './handed-events.ts';

/** Events that the driver holds, which it does not bound by bytes; the others wait on the connection. */
const DRIVER_BUFFER = 8;
const MAX_ACKNOWLEDGED = 500;
/** What was sent gets this long to arrive before the call is cancelled, which drops what is on its way. */
const ARRIVAL_MS = 100;

export interface GroupLinkOptions {
  readonly group: string;
  /** Events that the server hands over before it wants answers. */
  readonly bufferSize: number;
  /** Rung when there may be something to take, or an error. */
  readonly wakeUp: Pick<Signal, 'notify'>;
}

/** One connection of a consumer to its group, until it breaks. */
export class EventStoreDbGroupLink {
  readonly #subscription: PersistentSubscriptionToAll;
  readonly #broken = Promise.withResolvers<void>();
  #isConfirmed = false;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #error: Error | undefined;

  constructor({ client }: EventStoreDbConnection, { group, bufferSize, wakeUp }: GroupLinkOptions) {
    this.#subscription = client.subscribeToPersistentSubscriptionToAll(
      group,
      { bufferSize },
      { highWaterMark: DRIVER_BUFFER },
    );
    const end = (error: Error): void => {
      this.#error ??= error;
      this.#broken.resolve();
      wakeUp.notify();
    };
    this.#subscription.on('confirmation', () => {
      this.#isConfirmed = true;
      wakeUp.notify();
    });
    this.#subscription.on('readable', () => wakeUp.notify());
    this.#subscription.on('error', end);
    this.#subscription.on('end', () => end(new EndedByServer('the subscription')));
  }

  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  get error(): Error | undefined {
    return this.#error;
  }

  /** What has arrived next; undefined where nothing has. */
  take(): ServerEvent | undefined {
    return this.#subscription.read() ?? undefined;
  }

  /** Resolves when it is sent, and also where the connection breaks first: then the events come again. */
  async ack(deliveries: readonly ServerEvent[]): Promise<void> {
    for (let at = 0; at < deliveries.length; at += MAX_ACKNOWLEDGED) {
      await this.#sent(this.#subscription.ack(...deliveries.slice(at, at + MAX_ACKNOWLEDGED)));
    }
  }

  /** As `ack`. */
  async park({
    delivery,
    reason,
  }: {
    readonly delivery: ServerEvent;
    readonly reason: string;
  }): Promise<void> {
    await this.#sent(this.#subscription.nack('park', reason, delivery));
  }

  close(): void {
    this.#broken.resolve();
    const unsubscribe = (): void => {
      this.#subscription.unsubscribe().catch(() => undefined); // where there is no connection there is none to end
    };
    const leftMs = this.#sentAtMs + ARRIVAL_MS - performance.now();
    if (leftMs > 0) setTimeout(unsubscribe, leftMs).unref();
    else unsubscribe();
  }

  async #sent(sending: Promise<void>): Promise<void> {
    this.#sentAtMs = performance.now();
    try {
      await Promise.race([sending, this.#broken.promise]);
    } catch (error) {
      if (this.#error === undefined) throw error;
    }
  }
}
