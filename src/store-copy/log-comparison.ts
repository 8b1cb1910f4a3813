import { eventBytes, MAX_BATCH_BYTES } from '../event-store/batch-bytes.ts';
import type { EventStore, Position, RecordedEvent } from '../event-store/event-store.ts';
import { differenceBetween, placeOf } from './copied-event.ts';
import { readLog } from './read-log.ts';

/**
 * How far the target's order may be from the source's, in events: more than one batch of a copy, within which
 * streams are appended side by side.
 */
const WINDOW = 5_000;
/** The same in bytes: many more than one batch of a copy has. */
const WINDOW_BYTES = 16 * MAX_BATCH_BYTES;
const SYSTEM_STREAMS = '$';

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
 * Holds two logs against each other, event by event, reading each once and keeping little in memory. It goes on
 * where it stood when the target has got further events.
 */
export class LogComparison {
  readonly #options: LogComparisonOptions;
  readonly #source: AsyncIterator<{ readonly events: readonly RecordedEvent[]; readonly position: Position }>;
  /** Events of one side that have not been met on the other, by place, in the order of their log. */
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
    this.#source = readLog(options.source, whole)[Symbol.asyncIterator]();
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

  /** What is wrong in the target, a line each: events that the source does not have, or has otherwise. */
  get faults(): readonly string[] {
    const foreign = [...this.#targetOnly.values()];
    return [
      ...this.#differing,
      ...foreign.map((event) => `${placeOf(event)} (${event.type}) is in the target only`),
    ];
  }

  /** Reads the target on up to `end`, and of the source what it takes to match that. */
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
    while (this.#targetOnly.size > 0 && this.#mayReadOn()) await this.#readSource();
  }

  /** Reads the source to its end; as much as can't be matched stays in `missing`. */
  async readSource(): Promise<void> {
    while (this.#mayReadOn()) await this.#readSource();
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #inTarget(event: RecordedEvent): Promise<void> {
    if (event.stream.startsWith(SYSTEM_STREAMS) || this.#options.erased.has(event.stream)) return;
    const place = placeOf(event);
    if (place === this.#options.first) return;
    while (!this.#sourceOnly.has(place) && this.#mayReadOn()) await this.#readSource();
    const original = this.#sourceOnly.get(place);
    if (original === undefined) this.#targetOnly.set(place, event);
    else this.#match(original, event);
  }

  #mayReadOn(): boolean {
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
