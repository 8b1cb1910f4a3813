import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../../src/engines/sqlite/event-store/event-store.ts';
import type { Append, NewEvent } from '../../../../src/event-store/event-store.ts';
import type { KindOfServer } from './kinds.ts';
import { type LogRecord, type ProposedRecord, systemRecord, TOMBSTONE_REVISION } from './log-record.ts';
import { type Decision, type Expected, type Readable, StreamIndex } from './stream-index.ts';

export interface WriteRequest {
  readonly stream: string;
  readonly expected: Expected;
  readonly events: readonly ProposedRecord[];
}

export type WriteResult =
  | { readonly kind: 'written'; readonly last: LogRecord }
  | Exclude<Decision, { readonly kind: 'write' }>;

interface Waiting {
  readonly request: WriteRequest;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * An event in the embedded store. If the store would refuse its content, that is in a separate file named by its id.
 */
interface Envelope {
  readonly is_json: boolean;
  readonly content?: Content;
}

interface Content {
  readonly data: string;
  readonly metadata: string;
}

/** The event's own metadata is in its envelope. */
const METADATA: NewEvent['metadata'] = {
  schema_version: 1,
  at: '2026-01-01T00:00:00.000Z',
  actor: 'eventstoredb-double',
  command: 'append',
  correlation_id: 'none',
  causation_id: 'none',
};
const PAGE = 1_000;
const MAX_CONTENT_BYTES = 256 * 1024;
/** Positions look like byte offsets, so that nobody relies on counting them. */
const BYTES_PER_EVENT = 1_000;
const FIRST_BYTE = 2_137;

/** The log on an embedded event store without other writers. All of it is in memory too. */
export class DoubleLog {
  readonly index = new StreamIndex();
  readonly server: KindOfServer;
  readonly #folder: string;
  readonly #store: SqliteEventStore;
  readonly #clock: { nowMs: number };
  readonly #listeners = new Set<() => void>();
  /** The embedded store's position of the last event. */
  #sequence = 0;
  #waiting: Waiting[] = [];
  #committing: Promise<void> | undefined;
  #isClosed = false;

  private constructor(
    server: KindOfServer,
    { folder, store, clock }: { folder: string; store: SqliteEventStore; clock: { nowMs: number } },
  ) {
    this.server = server;
    this.#folder = folder;
    this.#store = store;
    this.#clock = clock;
  }

  static open(folder: string, server: KindOfServer): DoubleLog {
    const clock = { nowMs: Date.now() };
    const store = openSqliteEventStore({
      path: join(folder, 'events.db'),
      clock: { now: () => clock.nowMs },
    });
    const log = new DoubleLog(server, { folder, store, clock });
    log.#load();
    return log;
  }

  /**
   * Resolves once the events are on disk, but never after `close`, since a dead node never answers. Requests are
   * decided in the order in which they came.
   */
  write(request: WriteRequest): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return;
      this.#waiting.push({ request, resolve, reject });
      this.#committing ??= this.#commitAll();
    });
  }

  /** Streams whose events are written but not yet committed. They count for appends, and no read shows them. */
  readonly uncommitted = new Set<string>();

  /** The events that a reader of the stream gets. */
  readable(stream: string): Readable {
    if (this.uncommitted.has(stream)) return { kind: 'missing' };
    return this.index.readable(stream);
  }

  /** Writes the tombstone, so that the stream never accepts another event. Its events stay in the log. */
  async tombstone(stream: string): Promise<WriteResult> {
    const event = systemRecord('$streamDeleted', '', { isJson: false });
    return this.write({ stream, expected: 'any', events: [event] });
  }

  /** Calls `listener` after each commit, until the returned function is called. */
  onCommit(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The position of the next event. */
  get end(): number {
    return FIRST_BYTE + (this.#sequence + 1) * BYTES_PER_EVENT;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#committing;
    await this.#store.close();
  }

  #load(): void {
    for (let after = 0, caughtUp = false; !caughtUp; ) {
      const batch = this.#store.readAll({ prefixes: [], after, limit: PAGE });
      for (const { position, stream, id, type, data, recordedAtMs } of batch.events) {
        const { is_json, content = this.#contentBeside(id) } = data as Envelope;
        const bytes = { data: fromBase64(content.data), metadata: fromBase64(content.metadata) };
        const event = { id, type, isJson: is_json, ...bytes };
        this.#add(event, { stream, sequence: position, createdMs: recordedAtMs, isRecent: false });
      }
      after = batch.position;
      caughtUp = batch.caughtUp;
    }
  }

  async #commitAll(): Promise<void> {
    await Promise.resolve(); // so that requests of one turn share a commit
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        const results = await this.#commit(batch.map(({ request }) => request));
        for (const listener of this.#listeners) listener();
        for (const [place, result] of results.entries()) batch[place]?.resolve(result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#committing = undefined; // done here, since a caller that was answered may write before a `finally` would run
  }

  async #commit(requests: readonly WriteRequest[]): Promise<WriteResult[]> {
    this.#clock.nowMs = Date.now();
    const appends: Append[] = [];
    const record = (stream: string, events: readonly ProposedRecord[]): LogRecord | undefined => {
      const count = this.index.all(stream).length;
      appends.push({
        stream,
        expected: count === 0 ? 'none' : count - 1,
        events: events.map((event) => this.#toStored(event)),
      });
      const place = { stream, createdMs: this.#clock.nowMs, isRecent: true };
      return events.map((event) => this.#add(event, { ...place, sequence: ++this.#sequence })).at(-1);
    };
    const results = requests.map(({ stream, expected, events }): WriteResult => {
      const decision = this.index.decide(
        stream,
        expected,
        events.map(({ id }) => id),
      );
      if (decision.kind !== 'write') return decision;
      const last = record(stream, events);
      if (last === undefined) throw new RangeError('an append without events');
      return { kind: 'written', last };
    });
    await this.#persist(appends);
    return results;
  }

  async #persist(appends: readonly Append[]): Promise<void> {
    const results = appends.length === 0 ? [] : await this.#store.append(appends);
    const last = results.at(-1);
    const isInStep = last === undefined || (last.kind === 'appended' && last.position === this.#sequence);
    if (results.some(({ kind }) => kind !== 'appended') || !isInStep) {
      throw new Error('another process writes to the store of the EventStoreDB double');
    }
  }

  #toStored({ id, type, isJson, data, metadata }: ProposedRecord): NewEvent {
    const content: Content = { data: toBase64(data), metadata: toBase64(metadata) };
    const isSmall = data.length + metadata.length <= MAX_CONTENT_BYTES;
    if (!isSmall) writeFileSync(join(this.#folder, id), JSON.stringify(content));
    const envelope: Envelope = { is_json: isJson, ...(isSmall && { content }) };
    return { id, type, data: envelope, metadata: METADATA };
  }

  #contentBeside(id: string): Content {
    return JSON.parse(readFileSync(join(this.#folder, id), 'utf8'));
  }

  #add(event: ProposedRecord, place: PlaceInLog): LogRecord {
    const { stream, sequence, createdMs, isRecent } = place;
    // An event of this type from a writer has an ordinary revision.
    const isTombstone = event.type === '$streamDeleted' && !event.isJson;
    const revision = isTombstone ? TOMBSTONE_REVISION : BigInt(this.index.all(stream).length);
    const position = FIRST_BYTE + sequence * BYTES_PER_EVENT;
    const record = { ...event, position, stream, revision, createdMs };
    this.index.add(record, { isRecent });
    this.#sequence = sequence;
    return record;
  }
}

interface PlaceInLog {
  readonly stream: string;
  /** The embedded store's position. */
  readonly sequence: number;
  readonly createdMs: number;
  readonly isRecent: boolean;
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function fromBase64(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}
