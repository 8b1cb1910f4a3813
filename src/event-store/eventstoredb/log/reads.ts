import {
  BACKWARDS,
  END,
  type EventStoreDBClient,
  FORWARDS,
  START,
  type RecordedEvent as StoredEvent,
  StreamDeletedError,
  type StreamingRead,
  StreamNotFoundError,
} from '@eventstore/db-client';
import type { BackwardsBatch, EventStore, Position, RecordedEvent } from '../../event-store.ts';
import type { EventStoreDbConnection, UseOptions } from '../driver/connection.ts';
import { isWanted, recordedOf, toPosition, toRecorded } from '../driver/events.ts';

/** Records of one step backwards: an unfiltered read holds them all in memory. */
const MAX_BACKWARDS = 500;

export interface StreamRange {
  /** The first revision to read; 0 unless given. */
  readonly fromRevision?: number;
  /** All unless given. */
  readonly maxCount?: number;
}

/** The stream's events in order; `erased` where it takes no more. Nothing for a stream that does not exist. */
export async function readRange(
  connection: EventStoreDbConnection,
  stream: string,
  { fromRevision = 0, maxCount }: StreamRange = {},
  options?: UseOptions,
): Promise<RecordedEvent[] | 'erased'> {
  const range = {
    direction: FORWARDS,
    fromRevision: fromRevision === 0 ? START : BigInt(fromRevision),
    ...(maxCount === undefined ? {} : { maxCount }),
  } as const;
  return await unlessErased(() =>
    connection.use(async (client, cancelled) => {
      const events = await collect(client.readStream(stream, range), cancelled);
      return events.flatMap(({ event }) => (event === undefined ? [] : [toRecorded(event)]));
    }, options),
  );
}

/** The position of the last event in `$all`, including those of the server; 0 where there is none. */
export function readHead(connection: EventStoreDbConnection, options?: UseOptions): Promise<Position> {
  const last = { direction: BACKWARDS, fromPosition: END, maxCount: 1 } as const;
  return connection.use(async (client, cancelled) => {
    const [found] = await collect(client.readAll(last), cancelled);
    return found?.event === undefined ? 0 : toPosition(found.event.position.commit);
  }, options);
}

/** As `EventStore.readBackwards`. The server filters no reads, only subscriptions: this process does. */
export async function readBackwards(
  connection: EventStoreDbConnection,
  { prefixes, before, limit }: Parameters<EventStore['readBackwards']>[0],
): Promise<BackwardsBatch> {
  const fromPosition = before === undefined ? END : { commit: BigInt(before), prepare: BigInt(before) };
  const maxCount = Math.max(1, Math.min(limit, MAX_BACKWARDS));
  const found = await connection.use((client, cancelled) =>
    collect(client.readAll({ direction: BACKWARDS, fromPosition, maxCount }), cancelled),
  );
  const records = found.flatMap((resolved) => recordedOf(resolved) ?? []);
  return {
    events: records.filter(({ stream }) => isWanted(stream, prefixes)).slice(0, limit),
    position: records.at(-1)?.position ?? 0,
    atStart: found.length < maxCount,
  };
}

/**
 * The position of the last event up to this one that `$all` shows; 0 where there is none. Only after such a position
 * does a subscription leave nothing out: the server takes the event that it finds from there on for the one that the
 * caller has seen (0049).
 */
export async function lastShownUpTo(
  connection: EventStoreDbConnection,
  position: Position,
  options?: UseOptions,
): Promise<Position> {
  if (position === 0) return 0;
  const at = { fromPosition: { commit: BigInt(position), prepare: BigInt(position) }, maxCount: 1 };
  return connection.use(async (client, cancelled) => {
    const [found] = await collect(client.readAll({ ...at, direction: FORWARDS }), cancelled);
    if (found?.event !== undefined && toPosition(found.event.position.commit) === position) return position;
    const [before] = await collect(client.readAll({ ...at, direction: BACKWARDS }), cancelled);
    return before?.event === undefined ? 0 : toPosition(before.event.position.commit);
  }, options);
}

/** The first or the last event that can be read of a stream; undefined where it has none, or was erased. */
export async function readEnd(
  client: EventStoreDBClient,
  { stream, end }: { readonly stream: string; readonly end: 'first' | 'last' },
  cancelled: AbortSignal,
): Promise<StoredEvent | undefined> {
  const from =
    end === 'first'
      ? ({ direction: FORWARDS, fromRevision: START } as const)
      : ({ direction: BACKWARDS, fromRevision: END } as const);
  const found = await unlessErased(() =>
    collect(client.readStream(stream, { ...from, maxCount: 1 }), cancelled),
  );
  return found === 'erased' ? undefined : found[0]?.event;
}

/** All that a read returns. */
export function collect<E>(read: StreamingRead<E>, cancelled: AbortSignal): Promise<E[]> {
  return new Promise((resolve, reject) => {
    const found: E[] = [];
    read.on('data', (event) => found.push(event));
    read.on('end', () => resolve(found));
    read.on('error', reject);
    cancelled.addEventListener('abort', () => {
      read.cancel().catch(reject);
    });
  });
}

/** `[]` for a stream that does not exist, `erased` for one that was erased. */
export async function unlessErased<T>(read: () => Promise<T[]>): Promise<T[] | 'erased'> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof StreamNotFoundError) return [];
    if (error instanceof StreamDeletedError) return 'erased';
    throw error;
  }
}

/** Does `work` for every item, at most `limit` at once. Rejects with the first error. */
export async function inParallel<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  const rest = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
