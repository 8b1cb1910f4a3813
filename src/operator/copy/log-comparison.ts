import { eventBytes, MAX_BATCH_BYTES } from '../../event-store/batch-bytes.ts';
import type {
  EventStore,
  Position,
  RecordedEvent,
  SubscriptionBatch,
} from '../../event-store/event-store.ts';
import { differenceBetween, placeOf } from './copied-event.ts';

const BATCH = 1_000;
/**
 * How far the target's order may be from the source's, in events: more than one batch of a copy, in which the order
 * between streams may change.
 */
const WINDOW = 5_000;
/** The same in bytes: many more than one batch of a copy has. */
const WINDOW_BYTES = 16 * MAX_BATCH_BYTES;
/** What EventStoreDB records for itself. */
export const SYSTEM_STREAMS = '$';

export interface LogComparisonOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  /** Streams that count as empty in the target: those that were erased in the source. */
  readonly erased: ReadonlySet<string>;
  /** The place of the event that was copied before all others, and found equal. */
  readonly first: string;
  /** Where the source's log ends. */
  readonly sourceEnd: Position;
  /** Events found equal so far. */
  readonly onProgress: (matched: number) => void;
}

/**
 * Compares two logs event by event, reading each once with little in memory. When the target has got further events
 * it continues where it was.
 */
export class LogComparison {
  readonly #options: LogComparisonOptions;
  readonly #source: AsyncGenerator<SubscriptionBatch, void>;
  /** Events of one side that were not found on the other yet, by place, in the order of their log. */
  readonly #sourceOnly = new Map<string, RecordedEvent>();
  readonly #targetOnly = new Map<string, RecordedEvent>();
  #sourceOnlyBytes = 0;
  readonly #differing: string[] = [];
  #sourceEnded = false;
  #sourcePosition = 0;
  #targetPosition = 0;
  #matched = 0;

  constructor(options: LogComparisonOptions) {
    this.#options = options;
    const whole = { after: 0, upTo: options.sourceEnd };
    this.#source = readLog(options.source, whole);
  }

  get matched(): number {
    return this.#matched;
  }

  /** Up to here every event of the source is matched, or among `missing`. */
  get sourcePosition(): Position {
    return this.#sourcePosition;
  }

  /** Events of the source that were read and are not in the target, in the order of the log. */
  get missing(): readonly RecordedEvent[] {
    return [...this.#sourceOnly.values()];
  }

  /** What is wrong in the target, one line each: events that the source does not have, or that differ. */
  get faults(): readonly string[] {
    const foreign = [...this.#targetOnly.values()];
    return [
      ...this.#differing,
      ...foreign.map((event) => `${placeOf(event)} (${event.type}) is in the target only`),
    ];
  }

  /** Reads the target up to `end`, and as much of the source as matches that. */
  async readTarget(end: Position): Promise<void> {
    for await (const { events, position } of readLog(this.#options.target, {
      after: this.#targetPosition,
      upTo: end,
    })) {
      for (const event of events) {
        if (event.position > end) break;
        await this.#inTarget(event);
      }
      this.#targetPosition = Math.min(position, end);
      this.#options.onProgress(this.#matched);
      if (this.#targetOnly.size + this.#differing.length > WINDOW) return; // these are two different logs
    }
    while (this.#targetOnly.size > 0 && this.#hasCapacity()) await this.#readSource();
  }

  /** Reads the source to its end; what has no match stays in `missing`. */
  async readSource(): Promise<void> {
    while (this.#hasCapacity()) await this.#readSource();
  }

  async close(): Promise<void> {
    await this.#source.return();
  }

  async #inTarget(event: RecordedEvent): Promise<void> {
    if (event.stream.startsWith(SYSTEM_STREAMS) || this.#options.erased.has(event.stream)) return;
    const place = placeOf(event);
    if (place === this.#options.first) return;
    while (!this.#sourceOnly.has(place) && this.#hasCapacity()) await this.#readSource();
    const original = this.#sourceOnly.get(place);
    if (original === undefined) this.#targetOnly.set(place, event);
    else this.#match(original, event);
  }

  #hasCapacity(): boolean {
    return !this.#sourceEnded && this.#sourceOnly.size < WINDOW && this.#sourceOnlyBytes < WINDOW_BYTES;
  }

  async #readSource(): Promise<void> {
    const { value, done } = await this.#source.next();
    if (done === true) {
      this.#sourceEnded = true;
      return;
    }
    for (const event of value.events) {
      const place = placeOf(event);
      const found = this.#targetOnly.get(place);
      if (place === this.#options.first) this.#matched++;
      else if (found === undefined) {
        this.#sourceOnly.set(place, event);
        this.#sourceOnlyBytes += eventBytes(event);
      } else this.#match(event, found);
    }
    this.#sourcePosition = value.position;
  }

  #match(source: RecordedEvent, target: RecordedEvent): void {
    const place = placeOf(source);
    if (this.#sourceOnly.delete(place)) this.#sourceOnlyBytes -= eventBytes(source);
    this.#targetOnly.delete(place);
    const difference = differenceBetween(source, target);
    if (difference === undefined) this.#matched++;
    else this.#differing.push(`${place} (${source.type}): ${difference}`);
  }
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
