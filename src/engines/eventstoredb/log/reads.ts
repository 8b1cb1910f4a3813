import {
  type AllStreamResolvedEvent,
  BACKWARDS,
  END,
  FORWARDS,
  type ReadAllOptions,
  type ResolvedEvent,
  START,
  type RecordedEvent as StoredEvent,
  StreamDeletedError,
  type StreamingRead,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { MAX_BATCH_BYTES } from '../../../event-store/batch-bytes.ts';
import {
  type BackwardsBatch,
  type EventStore,
  isSelected,
  type StreamRange,
} from '../../../event-store/event-store.ts';
import type { Position, RecordedEvent } from '../../../event-store/recorded-event.ts';
import type { EventStoreDbConnection, UseOptions } from '../driver/connection.ts';
import { recordedOf, toPosition } from '../driver/events.ts';
import { StoredContent } from '../driver/stored-content.ts';

/** The maximum number of records of one step backwards, since an unfiltered read holds them all in memory. */
const MAX_BACKWARDS = 500;

export interface ServerRange extends StreamRange {
  /** Reads the events that links point to. */
  readonly resolveLinkTos?: boolean;
}

/** Reads the events of a stream in order; none if the stream does not exist, `erased` if it was erased. */
export async function readRange(
  connection: EventStoreDbConnection,
  stream: string,
  range?: ServerRange,
  options?: UseOptions,
): Promise<RecordedEvent[] | 'erased'> {
  return await readStream(connection, stream, (resolved) => recordedOf(resolved), { ...range, ...options });
}

/**
 * Reads like `readRange`, and returns what `toItem` makes of each event. It reads pages, since large events may take longer
 * than the limit for one try.
 */
export async function readStream<T>(
  connection: EventStoreDbConnection,
  stream: string,
  toItem: (resolved: ResolvedEvent) => T | undefined,
  { fromRevision = 0, limit = Infinity, resolveLinkTos = false, ...options }: ServerRange & UseOptions,
): Promise<T[] | 'erased'> {
  const items: T[] = [];
  let count = 0;
  for (let from = BigInt(fromRevision); ; ) {
    const range = {
      fromRevision: from === 0n ? (START as typeof START) : from,
      resolveLinkTos,
      ...(limit === Infinity ? {} : { maxCount: limit - count }),
    };
    const page = await unlessErased(() =>
      connection.use(
        (client, cancelled) => collectPage(client.readStream(stream, range), cancelled),
        options,
      ),
    );
    if (page === 'erased') return page;
    for (const resolved of page.found) {
      const item = toItem(resolved);
      if (item !== undefined) items.push(item);
    }
    count += page.found.length;
    const last = page.found.at(-1);
    if (!page.isFull || last === undefined || count >= limit) return items;
    from = (last.link ?? last.event)?.revision ?? from;
    from += 1n;
  }
}

/** Returns the position of the last event in `$all`, or of the last one before a position; 0 if there is none. */
export async function readHead(
  connection: EventStoreDbConnection,
  { before, ...options }: UseOptions & { readonly before?: Position } = {},
): Promise<Position> {
  const last = { direction: BACKWARDS, from: before, maxCount: 1 } as const;
  const [found] = (await readAll(connection, last, options)).found;
  return found?.event === undefined ? 0 : toPosition(found.event.position.commit);
}

/** Does `EventStore.readBackwards`. This process filters, since the server filters only subscriptions. */
export async function readBackwards(
  connection: EventStoreDbConnection,
  { prefixes, before, limit }: Parameters<EventStore['readBackwards']>[0],
): Promise<BackwardsBatch> {
  const maxCount = Math.max(1, Math.min(limit, MAX_BACKWARDS));
  const { found, isFull } = await readAll(connection, { direction: BACKWARDS, from: before, maxCount });
  const records = found.flatMap((resolved) => recordedOf(resolved) ?? []);
  return {
    events: records.filter(({ stream }) => isSelected(stream, prefixes)).slice(0, limit),
    position: records.at(-1)?.position ?? 0,
    atStart: found.length < maxCount && !isFull,
  };
}

/**
 * Returns the position of the last event up to this one that `$all` shows; 0 if there is none. Only after such a position
 * a subscription leaves nothing out, since the server assumes that the caller has seen the first event from there on
 * (0049).
 */
export async function lastShownUpTo(
  connection: EventStoreDbConnection,
  position: Position,
  options?: UseOptions,
): Promise<Position> {
  if (position === 0 || (await eventAt(connection, position, options)) !== undefined) return position;
  return await readHead(connection, { ...options, before: position });
}

/** Returns the event at the position of a record or of the log's end; `undefined` if `$all` shows none. */
export async function eventAt(
  connection: EventStoreDbConnection,
  position: Position,
  options?: UseOptions,
): Promise<RecordedEvent | undefined> {
  const at = { direction: FORWARDS, from: position, maxCount: 1 } as const;
  const [found] = (await readAll(connection, at, options)).found;
  const event = found && recordedOf(found);
  return event?.position === position ? event : undefined;
}

/** Reads a page of `$all`. Backwards it begins at the event before `from`, or at the end of the log. */
function readAll(
  connection: EventStoreDbConnection,
  {
    from,
    ...range
  }: Pick<ReadAllOptions, 'direction' | 'maxCount'> & { readonly from: Position | undefined },
  options?: UseOptions,
): Promise<Page<AllStreamResolvedEvent>> {
  const fromPosition = from === undefined ? END : { commit: BigInt(from), prepare: BigInt(from) };
  return connection.use(
    (client, cancelled) => collectPage(client.readAll({ ...range, fromPosition }), cancelled),
    options,
  );
}

/** Returns the first or the last event of a stream; `undefined` if it has none or was erased. */
export async function readEnd(
  connection: EventStoreDbConnection,
  stream: string,
  end: 'first' | 'last',
): Promise<RecordedEvent | undefined> {
  const from =
    end === 'first'
      ? ({ direction: FORWARDS, fromRevision: START } as const)
      : ({ direction: BACKWARDS, fromRevision: END } as const);
  const page = await unlessErased(() =>
    connection.use((client, cancelled) =>
      collectPage(client.readStream(stream, { ...from, maxCount: 1 }), cancelled),
    ),
  );
  return page === 'erased' ? undefined : page.found.map((found) => recordedOf(found))[0];
}

/** Collects the first events of a read. `isFull` is true if their bytes make a batch, so that there may be more. */
function collectPage<E extends Resolved>(read: StreamingRead<E>, cancelled: AbortSignal): Promise<Page<E>> {
  return new Promise((resolve, reject) => {
    const found: E[] = [];
    let bytes = 0;
    const cancel = (): void => {
      read.cancel().catch(reject);
    };
    const receive = (resolved: E): void => {
      found.push(resolved);
      const content = resolved.event?.data;
      bytes += content instanceof StoredContent ? content.receivedBytes : 0;
      if (bytes < MAX_BATCH_BYTES) return;
      read.off('data', receive).resume(); // further events are dropped
      cancel();
      resolve({ found, isFull: true });
    };
    read.on('data', receive);
    read.on('end', () => resolve({ found, isFull: false }));
    read.on('error', reject);
    cancelled.addEventListener('abort', cancel);
  });
}

interface Resolved {
  readonly event?: StoredEvent;
}

interface Page<E> {
  readonly found: E[];
  readonly isFull: boolean;
}

/** Returns an empty page if the stream does not exist, and `erased` if it was erased. */
async function unlessErased(
  read: () => Promise<Page<ResolvedEvent>>,
): Promise<Page<ResolvedEvent> | 'erased'> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof StreamNotFoundError) return { found: [], isFull: false };
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
