import type { Append, AppendResult } from '../../../event-store/event-store.ts';
import { repeatedAppend, type StoredAppend, storedAppends } from '../../../event-store/stored-append.ts';
import { type BatchAnswer, EventStoreDbBatchAppend } from '../driver/batch-append.ts';
import type { EventStoreDbConnection } from '../driver/connection.ts';
import { storeUnavailable } from '../driver/errors.ts';
import { inParallel, readRange } from './reads.ts';

/** How many streams one call appends to at the same time. More are no faster, and take memory. */
const MAX_STREAMS_AT_ONCE = 128;
/** The limit for one try. The server itself gives up after two seconds. */
const TIMEOUT_MS = 3_000;
/** Within this time a node has restarted, or another one has become the leader. */
const RETRY_FOR_MS = 10_000;

/** Appends with the guarantees of the port, even if a connection breaks before the answer. */
export class EventStoreDbAppends {
  readonly #connection: EventStoreDbConnection;
  readonly #batch: EventStoreDbBatchAppend;

  constructor(connection: EventStoreDbConnection) {
    this.#connection = connection;
    this.#batch = new EventStoreDbBatchAppend(connection.client);
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    const prepared = storedAppends(appends);
    const byStream = Map.groupBy(prepared.entries(), ([, { stream }]) => stream);
    const results = new Array<AppendResult>(prepared.length);
    await inParallel([...byStream.values()], MAX_STREAMS_AT_ONCE, async (ofStream) => {
      for (const [index, append] of ofStream) results[index] = await this.#appendOne(append);
    });
    return results;
  }

  #appendOne(append: StoredAppend): Promise<AppendResult> {
    let tried = false;
    return this.#connection.use(
      async (_, cancelled) => {
        // The server recognises a repeated append by its revision. With `any` it needs the ids of the events, which it
        // forgets in a restart.
        const found = tried && append.expected === 'any' ? await this.#find(append) : 'nothing';
        tried = true;
        if (typeof found !== 'string') return found;
        return this.#resultOf(append, await this.#batch.append(append, cancelled));
      },
      { timeoutMs: TIMEOUT_MS, retryForMs: RETRY_FOR_MS },
    );
  }

  /**
   * Looks up the events if the server answers without their position or with a conflict, since it may do so for a
   * repeated append. The leader of a cluster decides by what it has written, but reads show an event only once a majority
   * has it.
   */
  async #resultOf(append: StoredAppend, answer: BatchAnswer): Promise<AppendResult> {
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

  /** Returns the result of an earlier append of these events, or says what is recorded in their place instead. */
  async #find({ stream, expected, events }: StoredAppend): Promise<AppendResult | 'others' | 'nothing'> {
    const range = expected === 'any' ? {} : { fromRevision: firstRevision(expected), limit: events.length };
    const found = await readRange(this.#connection, stream, range, { retryForMs: 0 }); // the append itself retries
    if (found === 'erased') return { kind: 'erased' };
    if (found.length === 0) return 'nothing';
    const first = found.findIndex(({ id }) => id === events[0]?.id);
    const place = first < 0 ? [] : found.slice(first, first + events.length);
    return repeatedAppend(place, events) ?? 'others';
  }
}

/** True if an event is recorded where the first of these would be. */
function isTaken({ expected }: StoredAppend, actual: number | undefined): boolean {
  return actual !== undefined && (expected === 'any' || actual >= firstRevision(expected));
}

function firstRevision(expected: 'none' | number): number {
  return expected === 'none' ? 0 : expected + 1;
}
