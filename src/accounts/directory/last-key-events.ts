import type { AccountEvent } from '../../domain/account-events.ts';
import type { PlacedEvent } from './snapshots/snapshot.ts';

type KeyEvent = Extract<AccountEvent, { data: { prefix: string } }>;
type Turn = 'ended' | 'enabled';

/**
 * What the dispatcher must know of each key's past and an account does not say: the last event that ended the key's
 * deliveries, and the last that enabled its webhook. Whoever is told these knows what one told of all events knows.
 */
export class LastKeyEvents {
  readonly #last = new Map<string, PlacedEvent>();

  /** Takes note of an event that could be read, in the order of the log; one that was seen before changes nothing. */
  seen(placed: PlacedEvent): void {
    const { event, position } = placed;
    const turn = turnOf(event);
    if (turn === undefined) return;
    const key = `${turn} ${(event as KeyEvent).data.prefix}`;
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

function turnOf(event: AccountEvent): Turn | undefined {
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
