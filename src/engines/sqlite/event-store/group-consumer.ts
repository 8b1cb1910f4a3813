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
  /** Notifies of commits to the event store. */
  readonly commits: Pick<ChangeSignal, 'add' | 'remove'>;
  /** The longest pause between two claims, since another consumer may give events back, and the clock may be set. */
  readonly pollMs: number;
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
    const { group, clock, bufferSize, signal, commits, pollMs, onState } = this.#options;
    const notify = (): void => this.#changed.notify();
    const waiting: GroupEvent[] = [];
    signal.addEventListener('abort', notify);
    try {
      if (!signal.aborted) commits.add(this.#changed);
      onState?.(undefined);
      while (!signal.aborted) {
        this.#changed.reset();
        const claim = await group.claim(this.#holder, bufferSize);
        for (const event of claim.events) waiting.push(event);
        yield* this.#handOut(waiting, claim.leasedUntilMs);
        if (claim.more)
          await nextTurn(); // claiming is synchronous work
        else await this.#changed.wait(Math.max(1, Math.min(claim.nextDueMs - clock.now(), pollMs)));
      }
    } finally {
      signal.removeEventListener('abort', notify);
      commits.remove(this.#changed);
      if (waiting.length > 0 && this.#options.isOpen()) await group.release(this.#holder, waiting);
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
    this.#changed.notify(); // it may be due before anything else
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
}
