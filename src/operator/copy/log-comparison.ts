import type { EventStore, SubscriptionBatch } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { differenceBetween, placeOf } from './copied-event.ts';

const BATCH = 1_000;
/** More, and these are two different logs. */
const MAX_FAULTS = 5_000;
/** What EventStoreDB records for itself. */
const SYSTEM_STREAMS = '$';

export interface LogComparisonOptions {
  /** An embedded store, whose positions count events. */
  readonly source: EventStore;
  readonly target: EventStore;
  /** Streams that count as empty in the target: those that were erased in the source. */
  readonly erased: ReadonlySet<string>;
  /** Where the source's log ends. */
  readonly sourceEnd: Position;
  /** Events found equal so far. */
  readonly onProgress: (matched: number) => void;
}

/** Compares the target's log with the source: each event of the target with the one at its place there. */
export class LogComparison {
  /** What is wrong in the target, one line each: events that the source does not have, or that differ. */
  readonly faults: string[] = [];
  readonly #options: LogComparisonOptions;
  /** By position in the source: whether the target has the event. */
  readonly #copied: Uint8Array;
  #targetPosition = 0;
  #matched = 0;

  constructor(options: LogComparisonOptions) {
    this.#options = options;
    this.#copied = new Uint8Array(options.sourceEnd + 1);
  }

  /** Events that are the same on both sides. */
  get matched(): number {
    return this.#matched;
  }

  /** Reads the target from where it was read to before, up to `end`. */
  async readTarget(end: Position): Promise<void> {
    const { target, erased, onProgress } = this.#options;
    for await (const { events, position } of readLog(target, { after: this.#targetPosition, upTo: end })) {
      await this.#compare(
        events.filter(({ stream, position: at }) => at <= end && !isSystem(stream) && !erased.has(stream)),
      );
      this.#targetPosition = Math.min(position, end);
      onProgress(this.#matched);
      if (this.faults.length > MAX_FAULTS) return;
    }
  }

  /** The source's events that were not found in the target, in the order of the log. */
  async *missing(): AsyncGenerator<readonly RecordedEvent[], void> {
    const { source, sourceEnd } = this.#options;
    for await (const { events } of readLog(source, { after: 0, upTo: sourceEnd })) {
      const missing = events.filter(({ position }) => this.#copied[position] === 0);
      if (missing.length > 0) yield missing;
    }
  }

  async #compare(events: readonly RecordedEvent[]): Promise<void> {
    const originals = new Map<string, RecordedEvent>();
    const streams = new Set(events.map(({ stream }) => stream));
    for await (const [, history] of readInParts(this.#options.source, [...streams]))
      for (const event of history) originals.set(placeOf(event), event);
    for (const event of events) {
      const place = placeOf(event);
      const original = originals.get(place);
      if (original === undefined) {
        this.faults.push(`${place} (${event.type}) is in the target only`);
        continue;
      }
      this.#copied[original.position] = 1;
      const difference = differenceBetween(original, event);
      if (difference === undefined) this.#matched += 1;
      else this.faults.push(`${place} (${original.type}): ${difference}`);
    }
  }
}

export function isSystem(stream: string): boolean {
  return stream.startsWith(SYSTEM_STREAMS);
}

/** The log after `after`, up to `upTo` or a little further; what is not recorded yet is not waited for. */
export async function* readLog(
  store: EventStore,
  { after, upTo }: { readonly after: Position; readonly upTo: Position },
): AsyncGenerator<SubscriptionBatch, void> {
  if (after >= upTo) return;
  const { signal } = new AbortController();
  for await (const batch of store.subscribe({ prefixes: [], after, signal, batchSize: BATCH })) {
    yield batch;
    if (batch.position >= upTo) return;
  }
}
