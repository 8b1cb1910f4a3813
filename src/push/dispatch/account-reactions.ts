import { deliveryEffect } from '../../../projections/deliveries.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import type { AccountEvent } from '../../domain/account-events.ts';
import type { QueueChange } from '../queue/delivery-queue.ts';

/** What the dispatcher has to do after an account's event. */
export type Reaction =
  /** Ends a lane, or forgets its failures. Enabling a webhook also starts its ramp. */
  | Extract<QueueChange, { readonly kind: 'end lane' | 'enabled' }>
  /** Checks whether access checks 4 and 5 pass now. */
  | { readonly kind: 'access'; readonly accountId: number };

/**
 * Derives from account events what happens to deliveries. It gets the whole history, so that events count even if no
 * process was running when they happened.
 */
export class AccountReactions {
  /** The last event of each webhook that ends pending deliveries. */
  readonly #ends = new Map<string, { readonly position: number; readonly reason: string }>();
  readonly #enabledAtMs = new Map<string, number>();

  seen(event: AccountEvent, { position, atMs }: AccountEventPlace): Reaction | undefined {
    const effect = deliveryEffect(event);
    if (effect?.kind === 'ended') {
      const { prefix, reason } = effect;
      this.#ends.set(prefix, { position, reason });
      return { kind: 'end lane', prefix, reason, before: position };
    }
    if (effect?.kind === 'enabled') {
      this.#enabledAtMs.set(effect.prefix, atMs);
      return { kind: 'enabled', prefix: effect.prefix, atMs };
    }
    const isAccess = event.type === 'IntegrationEnabled' || event.type === 'ChargingProfileSet';
    return isAccess ? { kind: 'access', accountId: event.data.account_id } : undefined;
  }

  /** Why a delivery of an event at this position ends; `undefined` if no later event ends it. */
  endedSince(prefix: string, position: number): string | undefined {
    const end = this.#ends.get(prefix);
    return end !== undefined && end.position > position ? end.reason : undefined;
  }

  /**
   * Reactions that a starting process repeats, since it does not know whether they were completed. `isOff` says whether a
   * webhook takes no deliveries.
   */
  *atStart(isOff: (prefix: string) => boolean): Iterable<Reaction> {
    // If the webhook is on again, its redelivered deliveries may be newer than the end.
    for (const [prefix, { reason, position: before }] of this.#ends)
      yield { kind: 'end lane', prefix, reason, before, ...(!isOff(prefix) && { redelivered: false }) };
    for (const [prefix, atMs] of this.#enabledAtMs) yield { kind: 'enabled', prefix, atMs };
  }
}
