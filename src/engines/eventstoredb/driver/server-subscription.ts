import type { AllStreamSubscription, PersistentSubscriptionToAll } from '@eventstore/db-client';
import type { Signal } from '../../../base/signal.ts';
import { storeUnavailable } from './errors.ts';

/** The pauses between tries to subscribe. A subscription is joined again within two seconds of an election. */
export const SUBSCRIBE_BACKOFF = { maxMs: 1_000, jitter: true } as const;
/** The driver limits its buffer only by the number of events, so it is kept small. Other events wait on the connection. */
export const DRIVER_BUFFER = { highWaterMark: 8 } as const;

const CONFIRMATION_TIMEOUT_MS = 5_000;

/** One subscription on the server, until it breaks. */
export class ServerSubscription<S extends AllStreamSubscription | PersistentSubscriptionToAll> {
  protected readonly subscription: S;
  /** Resolves once it has broken or was closed. */
  protected readonly ended = Promise.withResolvers<void>();
  readonly #confirmation: NodeJS.Timeout;
  #isConfirmed = false;
  #error: Error | undefined;

  /** Notifies `changed` when there may be something to take, or an error. */
  constructor(subscription: S, changed: Pick<Signal, 'notify'>) {
    this.subscription = subscription;
    const end = (error: Error): void => {
      this.#error ??= error;
      this.ended.resolve();
      changed.notify();
    };
    // The driver itself waits for the confirmation without a limit.
    const late = storeUnavailable(`no subscription within ${CONFIRMATION_TIMEOUT_MS} ms`);
    this.#confirmation = setTimeout(end, CONFIRMATION_TIMEOUT_MS, late);
    subscription
      .on('confirmation', () => {
        clearTimeout(this.#confirmation);
        this.#isConfirmed = true;
        changed.notify();
      })
      .on('readable', () => changed.notify())
      .on('error', end)
      .on('end', () => end(storeUnavailable('the server ended the subscription')));
  }

  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  /** The error with which it has broken. Events that arrived before can still be taken. */
  get error(): Error | undefined {
    return this.#error;
  }

  close(): void {
    clearTimeout(this.#confirmation);
    this.ended.resolve();
    this.subscription.unsubscribe().catch(() => undefined); // rejects if there is no connection
  }
}
