import { onTestFinished } from 'vitest';
import type {
  GroupConsumer,
  GroupEvent,
  PersistentSubscriptions,
} from '../../../src/event-store/event-store.ts';

/** A consumer that is pulled one event at a time. */
export class Puller {
  readonly consumer: GroupConsumer;
  readonly #events: AsyncIterator<GroupEvent>;
  readonly #end: AbortController;
  readonly #quietMs: number;
  #pending: Promise<IteratorResult<GroupEvent>> | undefined;

  constructor(
    subscriptions: PersistentSubscriptions,
    {
      group,
      bufferSize,
      quietMs,
    }: { readonly group: string; readonly bufferSize: number; readonly quietMs: number },
  ) {
    this.#quietMs = quietMs;
    this.#end = new AbortController();
    this.consumer = subscriptions.consume(group, { bufferSize, signal: this.#end.signal });
    this.#events = this.consumer[Symbol.asyncIterator]();
    onTestFinished(() => this.stop());
  }

  async next(): Promise<GroupEvent> {
    this.#pending ??= this.#events.next();
    const { value, done } = await this.#pending;
    this.#pending = undefined;
    if (done === true) throw new Error('the consumer ended');
    return value;
  }

  async take(count: number): Promise<GroupEvent[]> {
    const events: GroupEvent[] = [];
    while (events.length < count) events.push(await this.next());
    return events;
  }

  /** True if nothing is handed out for a while. An event that comes later is kept for `next`. */
  async isQuiet(): Promise<boolean> {
    this.#pending ??= this.#events.next();
    const quiet = new Promise<true>((resolve) => setTimeout(resolve, this.#quietMs, true));
    return Promise.race([quiet, this.#pending.then(() => false)]);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#pending;
    await this.#events.return?.();
  }
}
