import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { Signal } from '../../signal.ts';
import type { CommitWatch } from '../../sqlite/commit-watch.ts';
import type { GroupConsumer, GroupEvent } from '../event-store.ts';
import type { SqliteGroup } from './group.ts';

export interface SqliteGroupConsumerOptions {
  readonly group: SqliteGroup;
  readonly clock: Clock;
  readonly bufferSize: number;
  readonly signal: AbortSignal;
  /** Whatever may bring work: the event store's commits and those of the group's own file. */
  readonly watches: readonly CommitWatch[];
  /** A due time is noticed this late at the latest where the clock does not run with real time. */
  readonly lookAtClockMs: number;
  /** Called when other consumers of this process may find work. */
  readonly onReturned: () => void;
  /** Whether the stores behind it can still be used. */
  readonly isOpen: () => boolean;
}

/** One of the consumers that compete for a group's events. */
export class SqliteGroupConsumer implements GroupConsumer {
  readonly #options: SqliteGroupConsumerOptions;
  readonly #holder = randomUUID();
  readonly #wakeUp = new Signal();

  constructor(options: SqliteGroupConsumerOptions) {
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GroupEvent, void, undefined> {
    const { group, bufferSize, signal, watches } = this.#options;
    const notify = (): void => this.#wakeUp.notify();
    const waiting: GroupEvent[] = [];
    signal.addEventListener('abort', notify);
    try {
      if (!signal.aborted) for (const watch of watches) watch.add(this.#wakeUp);
      while (!signal.aborted) {
        this.#wakeUp.reset();
        const claim = await group.claim(this.#holder, bufferSize);
        for (const event of claim.events) waiting.push(event);
        yield* this.#handOut(waiting, claim.leasedUntilMs);
        if (claim.events.length > 0 || claim.more)
          await nextTurn(); // claiming is synchronous work
        else await this.#waitUntil(claim.nextDueMs);
      }
    } finally {
      signal.removeEventListener('abort', notify);
      for (const watch of watches) watch.remove(this.#wakeUp);
      if (waiting.length > 0 && this.#options.isOpen()) {
        await group.release(this.#holder, waiting);
        this.#options.onReturned();
      }
    }
  }

  async ack(events: readonly GroupEvent[]): Promise<void> {
    await this.#options.group.ack(this.#holder, events);
    this.#wakeUp.notify(); // there is room for more
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
    this.#wakeUp.notify();
  }

  /** Leaves out what waited so long for its turn that another consumer may have it by now. */
  *#handOut(waiting: GroupEvent[], leasedUntilMs: number): Generator<GroupEvent, void, undefined> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      const next = waiting.shift();
      if (next === undefined) return;
      if (clock.now() < leasedUntilMs) yield next;
    }
  }

  /** Waits for a notify, or until the clock says that something falls due. */
  async #waitUntil(dueMs: number): Promise<void> {
    const { clock, lookAtClockMs } = this.#options;
    do {
      await this.#wakeUp.wait(Math.min(Math.max(1, dueMs - clock.now()), lookAtClockMs));
    } while (!this.#wakeUp.isNotified && clock.now() < dueMs);
  }
}
