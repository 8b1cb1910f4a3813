import type { Append, AppendResult } from '../../event-store.ts';
import {
  type BatchAnswer,
  type BatchAppend,
  BatchRefusal,
  EventStoreDbBatchAppend,
} from '../driver/batch-append.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { inParallel, readRange } from './reads.ts';

/** Streams of one call that are appended to at the same time; more gain nothing, and wait in memory. */
const IN_FLIGHT = 128;
/** One try; the server itself gives up after two seconds. */
const ANSWER_MS = 3_000;
/** A node that is started anew, or another one that is elected, is there within this time. */
const PATIENCE_MS = 10_000;

/** Appends with the port's guarantees, which hold across lost connections too. */
export class EventStoreDbAppends {
  readonly #connection: EventStoreDbConnection;
  readonly #batch: EventStoreDbBatchAppend;

  constructor(connection: EventStoreDbConnection) {
    this.#connection = connection;
    this.#batch = new EventStoreDbBatchAppend(connection.client);
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    const prepared = appends.map(toBytes); // at once: the caller may change its events after the call
    const byStream = Map.groupBy(prepared.entries(), ([, { stream }]) => stream);
    const results = new Array<AppendResult>(prepared.length);
    await inParallel([...byStream.values()], IN_FLIGHT, async (ofStream) => {
      for (const [index, append] of ofStream) results[index] = await this.#appendOne(append);
    });
    return results;
  }

  #appendOne(append: BatchAppend): Promise<AppendResult> {
    let tried = false;
    return this.#connection.use(
      async (_, givenUp) => {
        // A repetition is known by its revision; with `any` only as long as the node is up.
        const known = tried && append.expected === 'any' ? await this.#standing(append) : undefined;
        tried = true;
        return known ?? (await this.#resultOf(append, await this.#batch.append(append, givenUp)));
      },
      { answerMs: ANSWER_MS, retryForMs: PATIENCE_MS },
    );
  }

  async #resultOf(append: BatchAppend, answer: BatchAnswer): Promise<AppendResult> {
    if (answer.kind === 'erased') return answer;
    if (answer.kind === 'recorded' && answer.position !== undefined) {
      return { kind: 'appended', revision: answer.revision, position: answer.position };
    }
    if (answer.kind === 'conflict' && !mayStand(append, answer.actual)) return answer;
    const known = await this.#standing(append);
    if (known === undefined && answer.kind === 'recorded') {
      throw new BatchRefusal('the server does not find a repeated append yet');
    }
    return known ?? { kind: 'conflict', actual: answer.kind === 'conflict' ? answer.actual : undefined };
  }

  /** Where exactly these events stand already; undefined where they do not. */
  async #standing({ stream, expected, events }: BatchAppend): Promise<AppendResult | undefined> {
    const range = expected === 'any' ? {} : { fromRevision: firstRevision(expected), most: events.length };
    const found = await readRange(this.#connection, stream, range, { retryForMs: 0 }); // whoever asks has its own
    if (found === 'erased') return { kind: 'erased' };
    const first = found.findIndex(({ id }) => id === events[0]?.id);
    const place = first < 0 ? [] : found.slice(first, first + events.length);
    const last = place.at(-1);
    if (last === undefined || place.length < events.length) return undefined;
    if (place.some(({ id }, index) => id !== events[index]?.id)) return undefined;
    return { kind: 'appended', revision: last.revision, position: last.position };
  }
}

/** Whether the stream is long enough for these events to stand at their place. */
function mayStand({ expected, events }: BatchAppend, actual: number | undefined): boolean {
  if (actual === undefined) return false;
  return expected === 'any' || actual >= firstRevision(expected) + events.length - 1;
}

function firstRevision(expected: 'none' | number): number {
  return expected === 'none' ? 0 : expected + 1;
}

function toBytes({ stream, expected, events }: Append): BatchAppend {
  if (events.length === 0) throw new RangeError('an append needs at least one event');
  return {
    stream,
    expected,
    events: events.map(({ id, type, data, metadata }) => ({
      id,
      type,
      data: Buffer.from(JSON.stringify(data) ?? 'null'),
      metadata: Buffer.from(JSON.stringify(metadata)),
    })),
  };
}
