import type {
  Append,
  AppendResult,
  BackwardsBatch,
  Damage,
  EventStore,
  Position,
  RecordedEvent,
  SubscribeOptions,
  SubscriptionBatch,
} from '../event-store/event-store.ts';

/** An event store that is checked before anything is recorded in it: `bind` rejects where it is not the configuration's. */
export class BoundStore implements EventStore {
  readonly #store: EventStore;
  readonly #bind: () => Promise<unknown>;

  constructor(store: EventStore, bind: () => Promise<unknown>) {
    this.#store = store;
    this.#bind = bind;
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    await this.#bind();
    return this.#store.append(appends);
  }

  async erase(stream: string): Promise<void> {
    await this.#bind();
    return this.#store.erase(stream);
  }

  readStream(stream: string, options?: { readonly fromRevision?: number }): Promise<RecordedEvent[]> {
    return this.#store.readStream(stream, options);
  }

  readStreams(streams: readonly string[]): Promise<RecordedEvent[][]> {
    return this.#store.readStreams(streams);
  }

  isErased(stream: string): Promise<boolean> {
    return this.#store.isErased(stream);
  }

  subscribe(options: SubscribeOptions): AsyncIterable<SubscriptionBatch> {
    return this.#store.subscribe(options);
  }

  readBackwards(options: Parameters<EventStore['readBackwards']>[0]): Promise<BackwardsBatch> {
    return this.#store.readBackwards(options);
  }

  head(): Promise<Position> {
    return this.#store.head();
  }

  hasReached(position: Position): Promise<boolean> {
    return this.#store.hasReached(position);
  }

  findDamage(signal?: AbortSignal): Promise<readonly Damage[]> {
    return this.#store.findDamage(signal);
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
