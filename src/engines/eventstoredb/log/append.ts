import { assertStorable } from '../../../event-store/event-bounds.ts';
import type { Append, AppendResult } from '../../../event-store/event-store.ts';
import { jsonUtf8, repeatingJson } from '../../../event-store/new-event.ts';
import { type BatchAnswer, type BatchAppend, EventStoreDbBatchAppend } from '../driver/batch-append.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { storeUnavailable } from '../driver/errors.ts';
import { inParallel, readRange } from './reads.ts';

/** Streams of one call that are appended to at the same time; more are no faster, and take memory. */
const MAX_STREAMS_AT_ONCE = 128;
/** Of one try; the server itself gives up after two seconds. */
const TIMEOUT_MS = 3_000;
/** A node has restarted, or another one is the leader, within this time. */
const RETRY_FOR_MS = 10_000;

/** Appends with the guarantees of the port, also when a connection breaks before the answer. */
export class EventStoreDbAppends {
  readonly #connection: EventStoreDbConnection;
  readonly #batch: EventStoreDbBatchAppend;

  constructor(connection: EventStoreDbConnection) {
    this.#connection = connection;
    this.#batch = new EventStoreDbBatchAppend(connection.client);
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    const prepared = appends.map(toBytes(repeatingJson())); // at once: the caller may change its events after the call
    const byStream = Map.groupBy(prepared.entries(), ([, { stream }]) => stream);
    const results = new Array<AppendResult>(prepared.length);
    await inParallel([...byStream.values()], MAX_STREAMS_AT_ONCE, async (ofStream) => {
      for (const [index, append] of ofStream) results[index] = await this.#appendOne(append);
    });
    return results;
  }

  #appendOne(append: BatchAppend): Promise<AppendResult> {
    let tried = false;
    return this.#connection.use(
      async (_, cancelled) => {
        // The server recognises a repeated append by its revision. With `any` it needs the ids, which it forgets when it
        // restarts.
        const found = tried && append.expected === 'any' ? await this.#find(append) : 'nothing';
        tried = true;
        if (typeof found !== 'string') return found;
        return this.#resultOf(append, await this.#batch.append(append, cancelled));
      },
      { timeoutMs: TIMEOUT_MS, retryForMs: RETRY_FOR_MS },
    );
  }

  /**
   * The server may answer a repeated append without its position, or as a conflict: then its events are looked up. The
   * leader of a cluster judges by what it has written; what a majority does not have yet, or never will, no read shows.
   */
  async #resultOf(append: BatchAppend, answer: BatchAnswer): Promise<AppendResult> {
    if (answer.kind === 'erased') return answer;
    if (answer.kind === 'recorded' && answer.position !== undefined) {
      return { kind: 'appended', revision: answer.revision, position: answer.position };
    }
    if (answer.kind === 'conflict' && !isTaken(append, answer.actual)) return answer;
    const found = await this.#find(append);
    if (typeof found !== 'string') return found;
    if (answer.kind === 'conflict' && found === 'others') return answer;
    throw storeUnavailable('the server does not show yet what it has recorded');
  }

  /** The result of an earlier append of exactly these events; `others`, or nothing, may stand at their place. */
  async #find({ stream, expected, events }: BatchAppend): Promise<AppendResult | 'others' | 'nothing'> {
    const range = expected === 'any' ? {} : { fromRevision: firstRevision(expected), limit: events.length };
    const found = await readRange(this.#connection, stream, range, { retryForMs: 0 }); // the append itself retries
    if (found === 'erased') return { kind: 'erased' };
    if (found.length === 0) return 'nothing';
    const first = found.findIndex(({ id }) => id === events[0]?.id);
    const place = first < 0 ? [] : found.slice(first, first + events.length);
    const last = place.at(-1);
    const isWhole = place.length === events.length && place.every(({ id }, at) => id === events[at]?.id);
    if (last === undefined || !isWhole) return 'others';
    return { kind: 'appended', revision: last.revision, position: last.position };
  }
}

/** Whether an event stands where the first of these would. */
function isTaken({ expected }: BatchAppend, actual: number | undefined): boolean {
  return actual !== undefined && (expected === 'any' || actual >= firstRevision(expected));
}

function firstRevision(expected: 'none' | number): number {
  return expected === 'none' ? 0 : expected + 1;
}

function toBytes(metadataText: (metadata: object) => string): (append: Append) => BatchAppend {
  return ({ stream, expected, events }) => {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    return {
      stream,
      expected,
      events: events.map(({ id, type, ...event }) => {
        const data = jsonUtf8(event.data);
        const metadata = Buffer.from(metadataText(event.metadata));
        assertStorable({ type, dataBytes: data.length, metadataBytes: metadata.length });
        return { id, type, data, metadata };
      }),
    };
  };
}
