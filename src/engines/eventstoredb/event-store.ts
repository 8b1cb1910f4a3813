import { randomUUID } from 'node:crypto';
import { StreamDeletedError } from '@eventstore/db-client';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { EventMetadata } from '../../domain/events.ts';
import { firstPosition, isRewritten, rewrittenMetadata } from '../../event-store/codec.ts';
import type {
  Append,
  AppendResult,
  BackwardsBatch,
  EventStore,
  StreamRange,
  SubscribeOptions,
  SubscriptionBatch,
} from '../../event-store/event-store.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { EventStoreDbConnection } from './driver/connection.ts';
import { type NodeInfo, readNodeInfo } from './driver/node-info.ts';
import { EventStoreDbSubscriptions } from './groups/subscriptions.ts';
import { EventStoreDbAppends } from './log/append.ts';
import { inParallel, readBackwards, readEnd, readHead, readRange } from './log/reads.ts';
import { subscribe } from './log/subscribe.ts';

/**
 * How many streams `readStreams` reads at the same time, since each takes a round trip. One event of each may be in memory
 * while it arrives: 64 MiB together for the largest that this service records, and 16 MiB for each that others record.
 */
const MAX_READS_AT_ONCE = 64;
const PING_TIMEOUT_MS = 1_500;

export interface EventStoreDbOptions {
  /** `esdb://…` or `kurrentdb://…`, also with `+discover`, with credentials, TLS and the nodes. */
  readonly url: string;
  /** Decides when retried events of a group are due. The server stamps events by its own clock. */
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Events in EventStoreDB 23.10 or newer. It connects with the first use. Positions are commit positions of `$all`, which
 * the server's own events have too.
 */
export class EventStoreDb implements EventStore {
  readonly #connection: EventStoreDbConnection;
  readonly #appends: EventStoreDbAppends;
  readonly #clock: Clock;
  readonly #log: Log;

  constructor({ url, clock, log }: EventStoreDbOptions) {
    this.#connection = new EventStoreDbConnection(url);
    this.#appends = new EventStoreDbAppends(this.#connection);
    this.#clock = clock;
    this.#log = log;
  }

  /** Returns competing consumers on the same connection. Closing them leaves the store open. */
  subscriptions(): EventStoreDbSubscriptions {
    return new EventStoreDbSubscriptions({
      connection: this.#connection,
      clock: this.#clock,
      log: this.#log,
    });
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    this.#connection.assertOpen();
    return await this.#appends.append(appends);
  }

  async readStream(stream: string, range?: StreamRange): Promise<RecordedEvent[]> {
    const events = await readRange(this.#connection, stream, range);
    return events === 'erased' ? [] : events;
  }

  readLast(stream: string): Promise<RecordedEvent | undefined> {
    return readEnd(this.#connection, stream, 'last');
  }

  async readStreams(streams: readonly string[]): Promise<RecordedEvent[][]> {
    this.#connection.assertOpen();
    return await inParallel(streams, MAX_READS_AT_ONCE, (stream) => this.readStream(stream));
  }

  async isErased(stream: string): Promise<boolean> {
    return (await readRange(this.#connection, stream, { limit: 1 })) === 'erased';
  }

  subscribe(options: SubscribeOptions): AsyncGenerator<SubscriptionBatch, void, undefined> {
    return subscribe(this.#connection, { ...options, log: this.#log });
  }

  readBackwards(options: Parameters<EventStore['readBackwards']>[0]): Promise<BackwardsBatch> {
    return readBackwards(this.#connection, options);
  }

  head(): Promise<Position> {
    return readHead(this.#connection);
  }

  /** Resolves when a node answers. Rejects with `STORE_UNAVAILABLE` if none does within 1.5 s. */
  async ping(): Promise<void> {
    await readHead(this.#connection, { timeoutMs: PING_TIMEOUT_MS, retryForMs: 0 });
  }

  /** Returns the version and the clock of a node. Rejects with `STORE_UNAVAILABLE` if none answers within some seconds. */
  describe(): Promise<NodeInfo> {
    return readNodeInfo(this.#connection);
  }

  /**
   * Appends the events again and hides the former ones from readers of the stream. The server keeps the bytes of those
   * until it is scavenged.
   */
  async rewrite(events: readonly RecordedEvent[]): Promise<boolean> {
    const last = events.at(-1);
    if (last === undefined) return false;
    const { stream, revision: expected } = last;
    // If a rewrite ended before it truncated the stream, its copies follow the events that they replace.
    const copied = new Set(events.filter(isRewritten).map(firstPosition));
    const left = events.filter((event) => isRewritten(event) || !copied.has(event.position));
    const copies = left.map((event) => ({
      id: randomUUID(),
      type: event.type,
      data: event.data,
      metadata: rewrittenMetadata(event) as unknown as EventMetadata,
    }));
    const [appended] = await this.append([{ stream, expected, events: copies }]);
    if (appended?.kind !== 'appended') return false;
    await this.#connection.use(async (client) => {
      const { metadata = {} } = await client.getStreamMetadata(stream);
      await client.setStreamMetadata(stream, { ...metadata, truncateBefore: expected + 1 });
    });
    return true;
  }

  /** The server keeps the events' bytes until it is scavenged. */
  async erase(stream: string): Promise<void> {
    await this.#connection.use(async (client) => {
      try {
        await client.tombstoneStream(stream);
      } catch (error) {
        if (!(error instanceof StreamDeletedError)) throw error;
      }
    });
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
