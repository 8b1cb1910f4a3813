import { assertStorable } from '../../../event-store/event-bounds.ts';
import type { Append, AppendResult } from '../../../event-store/event-store.ts';
import { jsonText, repeatingJson } from '../../../event-store/new-event.ts';
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
        const existing = tried && append.expected === 'any' ? await this.#findRecorded(append) : undefined;
        tried = true;
        return existing ?? (await this.#resultOf(append, await this.#batch.append(append, cancelled)));
      },
      { timeoutMs: TIMEOUT_MS, retryForMs: RETRY_FOR_MS },
    );
  }

  /** The server may answer a repeated append without its position, or as a conflict: then its events are looked up. */
  async #resultOf(append: BatchAppend, answer: BatchAnswer): Promise<AppendResult> {
    if (answer.kind === 'erased') return answer;
    if (answer.kind === 'recorded' && answer.position !== undefined) {
      return { kind: 'appended', revision: answer.revision, position: answer.position };
    }
    if (answer.kind === 'conflict' && !mayBeRecorded(append, answer.actual)) return answer;
    const existing = await this.#findRecorded(append);
    if (existing === undefined && answer.kind === 'recorded') {
      throw storeUnavailable('the server does not find a repeated append yet');
    }
    return existing ?? { kind: 'conflict', actual: answer.kind === 'conflict' ? answer.actual : undefined };
  }

  /** The result of an earlier append of exactly these events at their place; undefined where there was none. */
  async #findRecorded({ stream, expected, events }: BatchAppend): Promise<AppendResult | undefined> {
    const range =
      expected === 'any' ? {} : { fromRevision: firstRevision(expected), maxCount: events.length };
    const found = await readRange(this.#connection, stream, range, { retryForMs: 0 }); // the append itself retries
    if (found === 'erased') return { kind: 'erased' };
    const first = found.findIndex(({ id }) => id === events[0]?.id);
    const place = first < 0 ? [] : found.slice(first, first + events.length);
    const last = place.at(-1);
    if (last === undefined || place.length < events.length) return undefined;
    if (place.some(({ id }, index) => id !== events[index]?.id)) return undefined;
    return { kind: 'appended', revision: last.revision, position: last.position };
  }
}

/** Whether the stream is long enough to hold these events at their place. */
function mayBeRecorded({ expected, events }: BatchAppend, actual: number | undefined): boolean {
  if (actual === undefined) return false;
  return expected === 'any' || actual >= firstRevision(expected) + events.length - 1;
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
        const data = Buffer.from(jsonText(event.data));
        const metadata = Buffer.from(metadataText(event.metadata));
        assertStorable({ type, dataBytes: data.length, metadataBytes: metadata.length });
        return { id, type, data, metadata };
      }),
    };
  };
}
