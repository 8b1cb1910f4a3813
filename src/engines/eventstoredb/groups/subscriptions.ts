import type { ResolvedEvent } from '@eventstore/db-client';
import type { Clock } from '../../../base/clock.ts';
import { FuelError } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { pause } from '../../../base/pause.ts';
import { membersOf } from '../../../event-store/codec.ts';
import {
  type ConsumeOptions,
  type GroupConsumer,
  type GroupSettings,
  type GroupStatus,
  MAX_PARKED_READ,
  type ParkedEvent,
  type PersistentSubscriptions,
} from '../../../event-store/event-store.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { parkedStream, toRecorded } from '../driver/events.ts';
import { readEnd, readStream } from '../log/reads.ts';
import { EventStoreDbGroupConsumer } from './consumer.ts';
import { ensureGroup, statusOf } from './settings.ts';

/** The server puts this before the reason that a consumer gives. */
const REASON_PREFIX = "Client explicitly NAK'ed message.\n";
/** The wait before the server is asked again. It ignores a replay of a group that it is still loading. */
const REPLAY_AGAIN_MS = 1_000;
const REPLAY_TIMEOUT_MS = 10_000;
const REPLAY_POLL_MS = 50;

export interface EventStoreDbSubscriptionsOptions {
  /** The connection of the event store, which stays open when the subscriptions are closed. */
  readonly connection: EventStoreDbConnection;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Groups are EventStoreDB's persistent subscriptions to `$all`. The server confirms neither acknowledgements nor
 * parking. So an acknowledgement may be lost with its connection, and a parked event appears in `parked` a moment later.
 */
export class EventStoreDbSubscriptions implements PersistentSubscriptions {
  readonly #options: EventStoreDbSubscriptionsOptions;
  readonly #closing = new AbortController();
  /** The settings of each ensured group. Its consumers apply the prefixes, since the server's group has no filter. */
  readonly #settings = new Map<string, GroupSettings>();

  constructor(options: EventStoreDbSubscriptionsOptions) {
    this.#options = options;
  }

  async ensureGroup(group: string, settings: GroupSettings): Promise<void> {
    this.#assertOpen();
    await ensureGroup(this.#options.connection, group, settings);
    this.#settings.set(group, settings);
  }

  /** Throws `REFUSED` if the group was not ensured here before. */
  consume(group: string, options: ConsumeOptions): GroupConsumer {
    const settings = this.#settings.get(group);
    if (settings === undefined) throw new FuelError('REFUSED', `there is no group ${group}: ensure it first`);
    const closed = this.#closing.signal;
    return new EventStoreDbGroupConsumer({ ...this.#options, ...options, group, settings, closed });
  }

  /** Leaves out events that were erased since. If the server has access control, only an administrator may read it. */
  async parked(group: string, limit = MAX_PARKED_READ): Promise<ParkedEvent[]> {
    this.#assertOpen();
    const range = { resolveLinkTos: true, limit };
    const found = await readStream(this.#options.connection, parkedStream(group), parkedOf, range);
    return found === 'erased' ? [] : found;
  }

  /** Returns the position of the checkpoint, which the server writes every second. */
  async status(group: string): Promise<GroupStatus | undefined> {
    this.#assertOpen();
    return await statusOf(this.#options.connection, group);
  }

  async replayParked(group: string): Promise<number> {
    this.#assertOpen();
    const { connection } = this.#options;
    const parked = parkedStream(group); // a replay truncates it, and it has no gaps
    const first = (await readEnd(connection, parked, 'first'))?.revision;
    const last = (await readEnd(connection, parked, 'last'))?.revision;
    if (first === undefined || last === undefined) return 0;
    const endMs = performance.now() + REPLAY_TIMEOUT_MS;
    let askAtMs = 0;
    for (;;) {
      if (performance.now() >= askAtMs) {
        await connection.use((client) => client.replayParkedMessagesToAll(group));
        askAtMs = performance.now() + REPLAY_AGAIN_MS;
      }
      const left = await readEnd(connection, parked, 'first');
      if (left === undefined || left.revision > last) return last - first + 1;
      if (performance.now() > endMs) {
        throw new FuelError(
          'STORE_UNAVAILABLE',
          `the event store has not replayed the parked events of ${group} in time. Run the command again`,
        );
      }
      await pause(REPLAY_POLL_MS, this.#closing.signal);
      this.#assertOpen();
    }
  }

  /** Ends the consumers; the event store stays open. */
  async close(): Promise<void> {
    this.#closing.abort();
  }

  #assertOpen(): void {
    this.#options.connection.assertOpen();
    if (this.#closing.signal.aborted) {
      throw new FuelError('STORE_CLOSED', 'the persistent subscriptions were closed');
    }
  }
}

function parkedOf({ event, link }: ResolvedEvent): ParkedEvent | undefined {
  if (event === undefined || link === undefined) return undefined;
  const { reason = '' } = membersOf(toRecorded(link).metadata) as { readonly reason?: string };
  return {
    event: toRecorded(event),
    reason: reason.startsWith(REASON_PREFIX) ? reason.slice(REASON_PREFIX.length) : reason,
    parkedAtMs: link.created.getTime(),
  };
}
