import { randomUUID } from 'node:crypto';
import type {
  EventStore,
  PersistentSubscriptions,
  SubscribeOptions,
  SubscriptionBatch,
} from '../../../src/event-store/event-store.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';

/**
 * A part of a shared store that behaves like a separate one: its streams have unique names, and its log begins
 * where it was opened.
 */
export class ScopedStore implements EventStore {
  readonly #store: EventStore;
  readonly #start: number;
  readonly scope: string;

  static async open(store: EventStore): Promise<ScopedStore> {
    return new ScopedStore(store, await store.head());
  }

  private constructor(store: EventStore, start: number) {
    this.#store = store;
    this.#start = start;
    this.scope = `${randomUUID().slice(0, 8)}.`;
  }

  append: EventStore['append'] = (appends) =>
    this.#store.append(appends.map((append) => ({ ...append, stream: this.scope + append.stream })));

  readStream: EventStore['readStream'] = async (stream, options) =>
    (await this.#store.readStream(this.scope + stream, options)).map((event) => this.inside(event));

  readLast: EventStore['readLast'] = async (stream) => {
    const last = await this.#store.readLast(this.scope + stream);
    return last && this.inside(last);
  };

  readStreams: EventStore['readStreams'] = async (streams) => {
    const found = await this.#store.readStreams(streams.map((stream) => this.scope + stream));
    return found.map((events) => events.map((event) => this.inside(event)));
  };

  isErased: EventStore['isErased'] = (stream) => this.#store.isErased(this.scope + stream);
  rewrite: EventStore['rewrite'] = (events) =>
    this.#store.rewrite(events.map((event) => ({ ...event, stream: this.scope + event.stream })));
  erase: EventStore['erase'] = (stream) => this.#store.erase(this.scope + stream);
  head: EventStore['head'] = () => this.#store.head();
  close: EventStore['close'] = () => this.#store.close();

  async *subscribe(options: SubscribeOptions): AsyncGenerator<SubscriptionBatch> {
    const prefixes = this.prefixes(options.prefixes);
    const after = Math.max(options.after, this.#start);
    for await (const batch of this.#store.subscribe({ ...options, prefixes, after })) {
      yield { ...batch, events: batch.events.map((event) => this.inside(event)) };
    }
  }

  readBackwards: EventStore['readBackwards'] = async (options) => {
    const batch = await this.#store.readBackwards({ ...options, prefixes: this.prefixes(options.prefixes) });
    return {
      events: batch.events.map((event) => this.inside(event)),
      position: batch.position,
      atStart: batch.atStart || batch.position <= this.#start,
    };
  };

  prefixes(prefixes: readonly string[]): string[] {
    return prefixes.length === 0 ? [this.scope] : prefixes.map((prefix) => this.scope + prefix);
  }

  inside(event: RecordedEvent): RecordedEvent {
    if (!event.stream.startsWith(this.scope)) throw new Error(`${event.stream} is of another scope`);
    return { ...event, stream: event.stream.slice(this.scope.length) };
  }
}

/** The same for groups. Each has a unique name. */
export function scopedSubscriptions(
  subscriptions: PersistentSubscriptions,
  store: ScopedStore,
): PersistentSubscriptions {
  const named = (group: string): string => store.scope + group;
  return {
    ensureGroup: (group, settings) =>
      subscriptions.ensureGroup(named(group), { ...settings, prefixes: store.prefixes(settings.prefixes) }),
    consume: (group, options) => subscriptions.consume(named(group), options),
    parked: (group, limit) => subscriptions.parked(named(group), limit),
    status: (group) => subscriptions.status(named(group)),
    replayParked: (group) => subscriptions.replayParked(named(group)),
    close: () => subscriptions.close(),
  };
}
