import { isWithoutDriver, type WithDriver } from '../../domain/transaction.ts';
import { isRecordingType, TRANSACTION_STREAMS, transactionIdOf } from '../../domain/transaction-events.ts';
import { membersOf } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts, readToEnd } from '../../event-store/reads.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { searchable } from '../search/search-text.ts';

/** The driver whose transactions are searched for. */
export interface DriverQuery {
  readonly accountId?: number | undefined;
  /** The driver's id, or a text that is its id or a part of its name or number. */
  readonly driver: number | string;
}

/** A transaction of the driver: its present stream, and the events of it that name the driver. */
export interface DriverTransaction {
  readonly id: number;
  readonly accountId: number;
  readonly history: readonly RecordedEvent[];
  readonly named: readonly DriverEvent[];
}

export type DriverEvent = RecordedEvent & { readonly data: WithDriver & { readonly account_id: number } };

export interface FindOptions {
  readonly store: Pick<EventStore, 'head' | 'subscribe' | 'readStreams'>;
  readonly signal: AbortSignal;
  /** Called with the number of events that were read. */
  readonly onProgress: (looked: number) => void;
}

/**
 * Finds a driver's transactions by reading the whole log, since nothing else has drivers. On an engine that can't change events
 * the log may still contain a former event, so the transaction's stream decides.
 */
export async function* findDriver(
  { accountId, driver }: DriverQuery,
  { store, signal, onProgress }: FindOptions,
): AsyncGenerator<DriverTransaction, void> {
  const query = { accountId, driver: typeof driver === 'number' ? driver : searchable(driver) };
  const seen = new Set<string>();
  let looked = 0;
  for await (const { events } of readToEnd(store, { prefixes: [TRANSACTION_STREAMS], after: 0, signal })) {
    looked += events.length;
    onProgress(looked);
    const streams = events.filter((event) => isOfDriver(event, query)).map(({ stream }) => stream);
    const fresh = [...new Set(streams)].filter((stream) => !seen.has(stream));
    for (const stream of fresh) seen.add(stream);
    for await (const [stream, history] of readInParts(store, fresh)) {
      const named = history.filter((event) => isOfDriver(event, query));
      const [first] = named;
      const id = transactionIdOf(stream);
      if (first !== undefined && id !== undefined)
        yield { id, accountId: first.data.account_id, history, named };
    }
  }
}

export function isRedactedEvent({ data }: DriverEvent): boolean {
  return isWithoutDriver(data);
}

/** True if the event records a transaction of the driver. A text to search for must be `searchable` here. */
export function isOfDriver(event: RecordedEvent, { accountId, driver }: DriverQuery): event is DriverEvent {
  if (!isRecordingType(event.type)) return false;
  const { account_id, driver: recorded } = membersOf(event.data);
  const { id, name, mobile_number } = membersOf(recorded);
  if (typeof account_id !== 'number' || typeof id !== 'number' || typeof name !== 'string') return false;
  if (accountId !== undefined && account_id !== accountId) return false;
  if (typeof driver === 'number') return id === driver;
  const isIn = (text: unknown): boolean => typeof text === 'string' && searchable(text).includes(driver);
  return driver === String(id) || isIn(name) || isIn(mobile_number);
}
