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
import type { Position, RecordedEvent } from '../../event-store.ts';
import type { EventStoreDbConnection, UseOptions } from '../driver/connection.ts';
import { toPosition, toRecorded } from '../driver/events.ts';

export interface StreamRange {
  /** The first revision to read; 0 unless given. */
  readonly fromRevision?: number;
  /** All unless given. */
  readonly most?: number;
}

/** The stream's events in order; `erased` where it takes no more. Nothing for a stream that does not exist. */
export async function readRange(
  connection: EventStoreDbConnection,
  stream: string,
  { fromRevision = 0, most }: StreamRange = {},
  options?: UseOptions,
): Promise<RecordedEvent[] | 'erased'> {
  const range = {
    direction: FORWARDS,
    fromRevision: fromRevision === 0 ? START : BigInt(fromRevision),
    ...(most === undefined ? {} : { maxCount: most }),
  } as const;
  return await knownStream(() =>
    connection.use(async (client, givenUp) => {
      const events = await all(client.readStream(stream, range), givenUp);
      return events.flatMap(({ event }) => (event === undefined ? [] : [toRecorded(event)]));
    }, options),
  );
}

/** The position of the last event of all, the server's own included; 0 where there is none. */
export function readHead(connection: EventStoreDbConnection, options?: UseOptions): Promise<Position> {
  const last = { direction: BACKWARDS, fromPosition: END, maxCount: 1 } as const;
  return connection.use(async (client, givenUp) => {
    const [found] = await all(client.readAll(last), givenUp);
    return found?.event === undefined ? 0 : toPosition(found.event.position.commit);
  }, options);
}

/**
 * The position of the last event up to this one that `$all` shows; 0 where there is none. After this one, and no
 * other, a subscription leaves nothing out: at any other position the server takes the next event for the one that
 * its caller has seen.
 */
export async function lastShownUpTo(
  connection: EventStoreDbConnection,
  position: Position,
  options?: UseOptions,
): Promise<Position> {
  if (position === 0) return 0;
  const at = { fromPosition: { commit: BigInt(position), prepare: BigInt(position) }, maxCount: 1 };
  return connection.use(async (client, givenUp) => {
    const [found] = await all(client.readAll({ ...at, direction: FORWARDS }), givenUp);
    if (found?.event !== undefined && toPosition(found.event.position.commit) === position) return position;
    const [before] = await all(client.readAll({ ...at, direction: BACKWARDS }), givenUp);
    return before?.event === undefined ? 0 : toPosition(before.event.position.commit);
  }, options);
}

/** The first or the last event that can be read of a stream; undefined where it has none, or was erased. */
export async function readEnd(
  client: EventStoreDBClient,
  { stream, end }: { readonly stream: string; readonly end: 'first' | 'last' },
  givenUp: AbortSignal,
): Promise<StoredEvent | undefined> {
  const from =
    end === 'first'
      ? ({ direction: FORWARDS, fromRevision: START } as const)
      : ({ direction: BACKWARDS, fromRevision: END } as const);
  const found = await knownStream(() => all(client.readStream(stream, { ...from, maxCount: 1 }), givenUp));
  return found === 'erased' ? undefined : found[0]?.event;
}

/** What a read brings, to its end. */
export function all<E>(read: StreamingRead<E>, givenUp: AbortSignal): Promise<E[]> {
  return new Promise((resolve, reject) => {
    const found: E[] = [];
    read.on('data', (event) => found.push(event));
    read.on('end', () => resolve(found));
    read.on('error', reject);
    givenUp.addEventListener('abort', () => {
      read.cancel().catch(reject);
    });
  });
}

/** `[]` for a stream that is not there, `erased` for one that was. */
export async function knownStream<T>(read: () => Promise<T[]>): Promise<T[] | 'erased'> {
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
