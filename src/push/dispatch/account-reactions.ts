import { deliveryEffect } from '../../../projections/deliveries.ts';
import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import type { AccountEvent } from '../../domain/account-events.ts';
import type { QueueChange } from '../queue/delivery-queue.ts';

/** What the dispatcher does after an account's event. */
export type Reaction =
  /** An enabling also starts the ramp of the webhook. */
  | Extract<QueueChange, { readonly kind: 'end lane' | 'enabled' }>
  /** Access checks 4 or 5 may pass now. */
  | { readonly kind: 'access'; readonly accountId: number };

/**
 * What the account events so far mean for deliveries. It gets the whole history, so that events that no process saw
 * when they happened count too.
 */
export class AccountReactions {
  /** By prefix: the last event that ends pending deliveries. */
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

  /** Why deliveries of the position end; `undefined` where no event since then ends them. */
  endedSince(prefix: string, position: number): string | undefined {
    const end = this.#ends.get(prefix);
    return end !== undefined && end.position > position ? end.reason : undefined;
  }

  /** What a process that starts does again, since nobody knows whether it was done; `isOff`: the webhook takes no deliveries. */
  *atStart(isOff: (prefix: string) => boolean): Iterable<Reaction> {
    // What was redelivered since it is back is none of what ended.
    for (const [prefix, { reason, position: before }] of this.#ends)
      yield { kind: 'end lane', prefix, reason, before, ...(!isOff(prefix) && { redelivered: false }) };
    for (const [prefix, atMs] of this.#enabledAtMs) yield { kind: 'enabled', prefix, atMs };
  }
}
