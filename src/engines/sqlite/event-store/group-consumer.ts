import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../../base/clock.ts';
import { Signal } from '../../../base/signal.ts';
import type { ConsumeOptions, GroupConsumer, GroupEvent } from '../../../event-store/event-store.ts';
import type { ChangeSignal } from '../../../tables/tables.ts';
import type { SqliteGroup } from './group.ts';

export interface SqliteGroupConsumerOptions extends ConsumeOptions {
  readonly group: SqliteGroup;
  readonly clock: Clock;
  /** Watches for commits to the event store and to the group's file, which may bring work. */
  readonly watches: readonly Pick<ChangeSignal, 'add' | 'remove'>[];
  /** How often the clock is read at least, since it may not run in real time. */
  readonly lookAtClockMs: number;
  /** Called when events were returned that other consumers of this process may claim. */
  readonly onReturned: () => void;
  /** Says whether the group's file is open. */
  readonly isOpen: () => boolean;
}

/** One of the consumers that compete for a group's events. */
export class SqliteGroupConsumer implements GroupConsumer {
  readonly #options: SqliteGroupConsumerOptions;
  readonly #holder = randomUUID();
  readonly #changed = new Signal();

  constructor(options: SqliteGroupConsumerOptions) {
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GroupEvent, void, undefined> {
    const { group, bufferSize, signal, watches, onState } = this.#options;
    const notify = (): void => this.#changed.notify();
    const waiting: GroupEvent[] = [];
    signal.addEventListener('abort', notify);
    try {
      if (!signal.aborted) for (const watch of watches) watch.add(this.#changed);
      onState?.(undefined);
      while (!signal.aborted) {
        this.#changed.reset();
        const claim = await group.claim(this.#holder, bufferSize);
        for (const event of claim.events) waiting.push(event);
        yield* this.#handOut(waiting, claim.leasedUntilMs);
        if (claim.more)
          await nextTurn(); // claiming is synchronous work
        else await this.#waitUntil(claim.nextDueMs);
      }
    } finally {
      signal.removeEventListener('abort', notify);
      for (const watch of watches) watch.remove(this.#changed);
      if (waiting.length > 0 && this.#options.isOpen()) {
        await group.release(this.#holder, waiting);
        this.#options.onReturned();
      }
    }
  }

  async ack(events: readonly GroupEvent[]): Promise<void> {
    await this.#options.group.ack(this.#holder, events);
    this.#changed.notify(); // the consumer can take more
  }

  async retry(
    event: GroupEvent,
    options: { readonly reason: string; readonly delayMs: number },
  ): Promise<void> {
    await this.#options.group.retry(this.#holder, event, options);
    this.#options.onReturned();
  }

  async park(event: GroupEvent, reason: string): Promise<void> {
    await this.#options.group.park(this.#holder, event, reason);
    this.#changed.notify();
  }

  /** Leaves out events whose lease has ended while they waited, since another consumer may have them. */
  *#handOut(waiting: GroupEvent[], leasedUntilMs: number): Generator<GroupEvent, void, undefined> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      const next = waiting.shift();
      if (next === undefined) return;
      if (clock.now() < leasedUntilMs) yield next;
    }
  }

  /** Waits for a notification, until `dueMs` by the clock, or until the clock is set back. */
  async #waitUntil(dueMs: number): Promise<void> {
    const { clock, lookAtClockMs } = this.#options;
    let leftMs = Number.POSITIVE_INFINITY;
    do {
      if (dueMs - clock.now() > leftMs) return;
      leftMs = dueMs - clock.now();
      await this.#changed.wait(Math.min(Math.max(1, dueMs - clock.now()), lookAtClockMs));
    } while (!this.#changed.isNotified && clock.now() < dueMs);
  }
}
