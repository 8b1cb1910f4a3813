import type { Clock } from '../../base/clock.ts';
import { Signal } from '../../base/signal.ts';
import { world } from '../../base/world.ts';
import { batchesOf, eventBytes } from '../../event-store/batch-bytes.ts';
import { assertStorable } from '../../event-store/event-bounds.ts';
import type {
  Append,
  AppendResult,
  EventStore,
  NewEvent,
  StreamRange,
} from '../../event-store/event-store.ts';
import { jsonText } from '../../event-store/new-event.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { opening } from './opening.ts';

const HEARTBEAT_MS = 1_000;
const BATCH_SIZE = 500;
const NAME = 'the event store';

/** The JSON of an event, which is parsed for each reader. */
interface Texts {
  readonly data: string;
  readonly metadata: string;
}
type Stored = Omit<RecordedEvent, keyof Texts> & Texts;
type PreparedAppend = Omit<Append, 'events'> & {
  readonly events: readonly (Pick<NewEvent, 'id' | 'type'> & Texts)[];
};

/** One log, for as long as its thread runs. */
export class MemoryLog {
  /** Position 1 first; `undefined` where the event was erased. */
  readonly events: (Stored | undefined)[] = [];
  readonly erased = new Set<string>();
  /** Who waits for further events, of each opening. */
  readonly waiting = new Set<Set<Signal>>();
  readonly #streams = new Map<string, Stored[]>();

  get head(): Position {
    return this.events.length;
  }

  /** Takes all of the events, or none. */
  append({ stream, expected, events }: PreparedAppend, nowMs: number): AppendResult {
    if (this.erased.has(stream)) return { kind: 'erased' };
    const present = this.of(stream);
    const next = (present.at(-1)?.revision ?? -1) + 1;
    const first = present.find(({ id }) => events.some((event) => event.id === id))?.revision;
    const start = expected === 'none' ? 0 : expected === 'any' ? (first ?? next) : expected + 1;
    if (start !== next) {
      const found = present.filter(({ revision }) => revision >= start).slice(0, events.length);
      const last = found.at(-1);
      const isRepeated = found.length === events.length && found.every(({ id }, n) => id === events[n]?.id);
      if (isRepeated && last !== undefined)
        return { kind: 'appended', revision: last.revision, position: last.position };
      return { kind: 'conflict', actual: next === 0 ? undefined : next - 1 };
    }
    for (const [n, event] of events.entries()) {
      const place = { position: this.head + 1, stream, revision: start + n };
      const stored = { ...event, ...place, recordedAtMs: nowMs };
      present.push(stored);
      this.events.push(stored);
    }
    this.#streams.set(stream, present);
    return { kind: 'appended', revision: start + events.length - 1, position: this.head };
  }

  of(stream: string): Stored[] {
    return this.#streams.get(stream) ?? [];
  }

  /** In the order of their positions. */
  between(after: Position, before: Position, prefixes: readonly string[]): Stored[] {
    const events = this.events.slice(after, before === Infinity ? undefined : before - 1);
    const isWanted = ({ stream }: Stored): boolean =>
      prefixes.length === 0 || prefixes.some((prefix) => stream.startsWith(prefix));
    return events.filter((event) => event !== undefined).filter(isWanted);
  }

  rewrite(events: readonly RecordedEvent[]): boolean {
    const stored = this.of(events[0]?.stream ?? '');
    if (stored.length !== events.length) return false;
    for (const [n, event] of events.entries()) {
      const data = jsonText(event.data);
      if (stored[n]?.data !== data) Object.assign(stored[n] ?? {}, { data, id: world.randomUUID() });
    }
    return true;
  }

  erase(stream: string): void {
    this.erased.add(stream);
    for (const { position } of this.of(stream)) this.events[position - 1] = undefined;
    this.#streams.delete(stream);
  }

  notify(): void {
    for (const waiting of this.waiting) for (const signal of waiting) signal.notify();
  }
}

/** The event store in the memory of one thread: several openings share its log. */
export function openMemoryEventStore(log: MemoryLog, clock: Clock): EventStore {
  const methods = {
    async append(appends: readonly PreparedAppend[]) {
      const results = appends.map((append) => log.append(append, clock.now()));
      log.notify();
      return results;
    },
    async readStream(stream: string, { fromRevision = 0, limit = Infinity }: StreamRange = {}) {
      const events = log.of(stream).filter(({ revision }) => revision >= fromRevision);
      return events.slice(0, limit).map(recorded);
    },
    readLast: async (stream: string) => log.of(stream).slice(-1).map(recorded)[0],
    readStreams: async (streams: readonly string[]) => streams.map((stream) => log.of(stream).map(recorded)),
    isErased: async (stream: string) => log.erased.has(stream),
    async readBackwards({ prefixes, before = Infinity, limit }: Parameters<EventStore['readBackwards']>[0]) {
      await world.nextTurn(); // as the others: a caller takes step after step
      const matching = log.between(0, before, prefixes);
      const events = firstBatch(matching.toReversed(), limit);
      const position = events.length < matching.length ? (events.at(-1)?.position ?? 1) : 1;
      return { events, position, atStart: events.length === matching.length };
    },
    head: async () => log.head,
    hasReached: async (position: Position) => position <= log.head,
    findDamage: async () => [],
    rewrite: async (events: readonly RecordedEvent[]) => log.rewrite(events),
    async erase(stream: string) {
      log.erase(stream);
    },
  };
  const waiting = new Set<Signal>();
  log.waiting.add(waiting);
  const { append, ...store } = opening(NAME, methods, () => {
    log.waiting.delete(waiting);
    for (const signal of waiting) signal.notify();
  });
  return {
    ...store,
    append: async (appends) => append(appends.map(prepared)),
    async *subscribe({ prefixes, after, signal, batchSize = BATCH_SIZE, unparsed = false }) {
      const changed = new Signal();
      const notify = (): void => changed.notify();
      signal.addEventListener('abort', notify);
      waiting.add(changed);
      try {
        for (let position = after; !signal.aborted; ) {
          changed.reset();
          await store.head(); // rejects after `close`
          const matching = log.between(position, Infinity, prefixes);
          const events = firstBatch(matching, batchSize, unparsed ? unparsedOf : recorded);
          const caughtUp = events.length === matching.length;
          position = caughtUp ? Math.max(position, log.head) : (events.at(-1)?.position ?? position);
          yield { events, position, checkpoint: position, caughtUp };
          if (caughtUp && !signal.aborted) await changed.wait(HEARTBEAT_MS);
        }
      } finally {
        signal.removeEventListener('abort', notify);
        waiting.delete(changed);
      }
    },
  };
}

function prepared({ events, ...target }: Append): PreparedAppend {
  if (events.length === 0) throw new RangeError('an append needs at least one event');
  const texts = events.map(({ id, type, ...event }) => {
    const [data, metadata] = [jsonText(event.data), JSON.stringify(event.metadata)];
    assertStorable({ type, dataBytes: Buffer.byteLength(data), metadataBytes: Buffer.byteLength(metadata) });
    return { id, type, data, metadata };
  });
  return { ...target, events: texts };
}

function firstBatch(events: readonly Stored[], most: number, toEvent = recorded): RecordedEvent[] {
  for (const batch of batchesOf(events.values().map(toEvent), { most, bytesOf: eventBytes })) return batch;
  return [];
}

function unparsedOf(event: Stored): RecordedEvent {
  return { ...event, data: Buffer.from(event.data), metadata: Buffer.from(event.metadata) };
}

function recorded(event: Stored): RecordedEvent {
  return { ...event, data: JSON.parse(event.data), metadata: JSON.parse(event.metadata) };
}
