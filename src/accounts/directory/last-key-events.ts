import type { AccountEvent } from '../../domain/account-events.ts';
import type { PlacedEvent } from './snapshots/snapshot.ts';

type KeyEvent = Extract<AccountEvent, { data: { prefix: string } }>;
type Effect = 'ended' | 'enabled';

/**
 * What the dispatcher must know of each key's past and an account does not say: the last event that ended the key's
 * deliveries, and the last that enabled its webhook. The other events make no difference to it.
 */
export class LastKeyEvents {
  readonly #last = new Map<string, PlacedEvent>();

  /** Repeating an event changes nothing. */
  add(placed: PlacedEvent): void {
    const { event, position } = placed;
    const effect = effectOf(event);
    if (effect === undefined) return;
    const key = `${effect} ${(event as KeyEvent).data.prefix}`;
    const before = this.#last.get(key);
    if (before === undefined || before.position < position) this.#last.set(key, placed);
  }

  events(): Iterable<PlacedEvent> {
    return this.#last.values();
  }

  inOrder(): PlacedEvent[] {
    return [...this.#last.values()].sort((a, b) => a.position - b.position);
  }
}

function effectOf(event: AccountEvent): Effect | undefined {
  switch (event.type) {
    case 'KeySwitchedOff':
    case 'WebhookRemoved':
    case 'WebhookDisabled':
      return 'ended';
    case 'WebhookEnabled':
      return 'enabled';
    default:
      return undefined;
  }
}
