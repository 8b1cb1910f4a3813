import { steadyClock } from '../../base/clock.ts';
import { membersOf } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { operationsOf } from '../../event-store/operations.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';

/** A redaction is noticed within this time after it was recorded. */
export const REDACTION_SEEN_MS = 1_000;

/** Recognizes former events of redacted drivers, which an engine that can't change its events still hands out. */
export class RedactedDrivers {
  readonly #store: Pick<EventStore, 'readStream'>;
  /** The position of the last redaction, by account and driver. Later events are not redacted. */
  #redactedAt: ReadonlyMap<string, Position> = new Map();
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(store: Pick<EventStore, 'readStream'>) {
    this.#store = store;
  }

  /** Reads new redactions. Must be called before events are judged. Rejects as the store does. */
  async look(): Promise<void> {
    if (steadyClock.now() < this.#lookedAtMs + REDACTION_SEEN_MS) return;
    this.#redactedAt = (await operationsOf(this.#store)).redactedAt;
    this.#lookedAtMs = steadyClock.now();
  }

  has({ data, position }: RecordedEvent): boolean {
    if (this.#redactedAt.size === 0) return false;
    const { account_id, driver } = membersOf(data);
    return position < (this.#redactedAt.get(`${account_id}/${membersOf(driver).id}`) ?? 0);
  }
}
