import type { AccountEventPlace } from '../../accounts/directory/live-directory.ts';
import type { AccountEvent } from '../../domain/account-events.ts';

/** What an account's event calls for at the delivery queue. */
export type Reaction =
  | { readonly kind: 'end lane'; readonly prefix: string; readonly reason: string }
  /** The webhook was enabled: its run of failures is over and its ramp begins. */
  | { readonly kind: 'enabled'; readonly prefix: string; readonly atMs: number }
  /** Access checks 4 or 5 may pass now. */
  | { readonly kind: 'access'; readonly accountId: number };

interface LaneEnd {
  readonly position: number;
  readonly reason: string;
}

/**
 * What the account events seen so far mean for deliveries. It is fed the whole history, so that what happened
 * while no process ran counts like what happens now.
 */
export class AccountReactions {
  /** By prefix: the last time that what was pending had to end. */
  readonly #ends = new Map<string, LaneEnd>();
  readonly #enabledAtMs = new Map<string, number>();

  seen(event: AccountEvent, { position, atMs }: AccountEventPlace): Reaction | undefined {
    switch (event.type) {
      case 'KeySwitchedOff':
        return this.#end(event.data.prefix, { position, reason: 'the key was switched off' });
      case 'WebhookRemoved':
        return this.#end(event.data.prefix, { position, reason: 'the webhook was removed' });
      case 'WebhookDisabled':
        return this.#end(event.data.prefix, { position, reason: disabledReason(event.data.reason) });
      case 'WebhookEnabled':
        this.#enabledAtMs.set(event.data.prefix, atMs);
        return { kind: 'enabled', prefix: event.data.prefix, atMs };
      case 'IntegrationEnabled':
      case 'ChargingProfileSet':
        return { kind: 'access', accountId: event.data.account_id };
      default:
        return undefined;
    }
  }

  /** Why what was owed at `position` had to end since; `undefined` where it need not. */
  endedSince(prefix: string, position: number): string | undefined {
    const end = this.#ends.get(prefix);
    return end !== undefined && end.position > position ? end.reason : undefined;
  }

  /** Every lane that was ever ended, with the last reason. */
  ends(): Iterable<readonly [prefix: string, end: LaneEnd]> {
    return this.#ends;
  }

  /** When each webhook that was ever enabled again was last enabled. */
  enabled(): Iterable<readonly [prefix: string, atMs: number]> {
    return this.#enabledAtMs;
  }

  #end(prefix: string, end: LaneEnd): Reaction {
    this.#ends.set(prefix, end);
    return { kind: 'end lane', prefix, reason: end.reason };
  }
}

/** How a delivery ends that was pending when its webhook was disabled. */
export function disabledReason(reason: string): string {
  return `the webhook was disabled: ${reason}`;
}
