import type { Clock } from '../../base/clock.ts';
import { batchAttributes, commandPlace, type SpanPlace, traceBatch } from '../../base/tracing/spans.ts';
import { world } from '../../base/world.ts';
import type { Decision } from '../../domain/decision.ts';
import type { EventMetadata } from '../../domain/events.ts';
import type { Append, AppendResult, EventStore, NewEvent } from '../../event-store/event-store.ts';
import { type Author, metadataOf, newEventWith, type RecordableEvent } from '../../event-store/new-event.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import type { NumberedLine, UsableLine } from './lines.ts';

/** Numbers of lines. Their sum is the number of lines that were read. */
export interface LineCounts {
  readonly recorded: number;
  readonly unchanged: number;
  readonly refused: number;
}

/** Decides a line by the stream's events and the lines before it. `atMs` is the time at which its events would be recorded. */
export type LineDecider<T, E extends RecordableEvent> = (content: T, atMs: number) => Decision<E>;

export interface RecordLinesOptions<T, E extends RecordableEvent> {
  readonly store: Pick<EventStore, 'readStreams' | 'append'>;
  /** In the order of the input. */
  readonly lines: AsyncIterable<readonly NumberedLine<T>[]>;
  readonly author: Author;
  readonly clock: Clock;
  /** Makes the decider for the lines of one stream, which keep their order. It is called again after a conflict. */
  readonly decider: (history: readonly RecordedEvent[]) => LineDecider<T, E>;
  /**
   * True for a line that records an event only if its stream is empty. A stream whose first line is one of these is not read
   * unless the append meets a conflict.
   */
  readonly beginsStream?: (content: T) => boolean;
  /** Judges every line as if the lines before it had been recorded, and records nothing. */
  readonly dryRun?: boolean | undefined;
  /** A batch ends with the line that reaches this length of text. */
  readonly batchCharacters: number;
  /** Called right before each append. */
  readonly onAppend?: () => Promise<void>;
  readonly onRefused: (lineNumber: number, reason: string) => void;
  /** Called with each line that caused events, once they are recorded. */
  readonly onRecorded?: (content: T, events: readonly E[]) => Promise<void>;
  readonly onProgress: (counts: LineCounts) => void;
  /** Ends the work between two batches. What was recorded stays, and the same input can be given again. */
  readonly signal: AbortSignal;
}

const BATCH_LINES = 1_000;
/** An append takes no further line after this many events, since EventStoreDB takes at most 1 MiB. */
const APPEND_EVENTS = 500;
/** Each conflict means that another writer made progress. This many in a row mean that something is wrong. */
const MAX_ROUNDS = 100;

/** The outcome of the lines of one stream, unless another writer appends to it meanwhile. */
interface Plan<T, E> {
  readonly append: Append;
  readonly decided: readonly { readonly line: UsableLine<T>; readonly decision: Decision<E> }[];
  /** The lines that do not fit into this append. */
  readonly rest: readonly UsableLine<T>[];
}

type ByStream<T> = ReadonlyMap<string, readonly UsableLine<T>[]>;

/**
 * Records what lines ask for, in batches. Each line is recorded, unchanged or refused with a reason, independently of the
 * others. Repeated or interrupted work records only what is missing.
 */
export async function recordLines<T, E extends RecordableEvent>(
  options: RecordLinesOptions<T, E>,
): Promise<LineCounts> {
  const recorder = new LineRecorder(options);
  try {
    for await (const batch of inBatches(options.lines, options.batchCharacters)) {
      if (options.signal.aborted) break;
      await recorder.record(batch);
    }
  } catch (error) {
    // The signal may have ended the input while it was being read.
    if (!options.signal.aborted || (error as Error).name !== 'AbortError') throw error;
  }
  return recorder.end();
}

async function* inBatches<Line extends { readonly characters: number }>(
  input: AsyncIterable<readonly Line[]>,
  maxCharacters: number,
): AsyncGenerator<readonly Line[]> {
  let batch: Line[] = [];
  let characters = 0;
  for await (const lines of input) {
    for (const line of lines) {
      batch.push(line);
      characters += line.characters;
      if (batch.length < BATCH_LINES && characters < maxCharacters) continue;
      yield batch;
      batch = [];
      characters = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

class LineRecorder<T, E extends RecordableEvent> {
  readonly #options: RecordLinesOptions<T, E>;
  readonly #author: Author;
  /** The span of all batches, which the traces of what they record link to. */
  readonly #command: SpanPlace;
  readonly #span: ReturnType<typeof traceBatch>;
  readonly counts = { recorded: 0, unchanged: 0, refused: 0 };
  /** True if most streams of the last batch that could have been new were new. If not, reading them first costs less. */
  #wereMostlyNew = false;
  /** The deciders of a dry run, which know what the lines before would have made of their streams. */
  readonly #dryDeciders = new Map<string, LineDecider<T, E>>();

  constructor(options: RecordLinesOptions<T, E>) {
    this.#options = options;
    const correlationId = options.author.correlationId ?? world.randomUUID();
    this.#author = { ...options.author, correlationId };
    this.#command = commandPlace(correlationId);
    this.#span = traceBatch(options.author.command, { own: this.#command });
  }

  end(): LineCounts {
    const { recorded, unchanged, refused } = this.counts;
    this.#span.end(batchAttributes(recorded + unchanged + refused));
    return { ...this.counts };
  }

  async record(lines: readonly NumberedLine<T>[]): Promise<void> {
    const span = traceBatch('record lines', { parent: this.#command });
    for (const line of lines) if (!line.ok) this.#refuse(line.number, line.reason);
    let open: readonly UsableLine<T>[] = lines.filter((line) => line.ok);
    for (let round = 0; open.length > 0; round++) {
      if (round === MAX_ROUNDS) throw new Error(`an import had a conflict in each of ${MAX_ROUNDS} rounds`);
      open = await this.#round(open, round === 0);
    }
    span.end(batchAttributes(lines.length, lines.at(-1)?.number));
    this.#options.onProgress({ ...this.counts });
  }

  /** Decides each line by its stream and appends. Returns the lines that must be decided again, or that are left. */
  async #round(lines: readonly UsableLine<T>[], isFirst: boolean): Promise<readonly UsableLine<T>[]> {
    const byStream = Map.groupBy(lines, ({ stream }) => stream);
    const maybeNew = isFirst ? this.#beginning(byStream) : new Set<string>();
    const plans = await this.#plans(byStream, this.#wereMostlyNew ? maybeNew : new Set());
    const planned = plans.filter(({ append }) => append.events.length > 0);
    const results = await this.#append(planned.map(({ append }) => append));
    const resultOf = new Map(planned.map((plan, index) => [plan, results[index]?.kind]));
    const open: UsableLine<T>[] = [];
    let existed = 0;
    for (const plan of plans) {
      const result = resultOf.get(plan);
      const isConflict = result === 'conflict';
      if ((isConflict || plan.append.expected !== 'none') && maybeNew.has(plan.append.stream)) existed += 1;
      // Another writer's events may change the decision on every line of the stream.
      if (isConflict) for (const { line } of plan.decided) open.push(line);
      else await this.#count(plan, result === 'erased');
      for (const line of plan.rest) open.push(line);
    }
    if (maybeNew.size > 0) this.#wereMostlyNew = existed * 2 < maybeNew.size;
    return open;
  }

  async #append(appends: readonly Append[]): Promise<readonly AppendResult[]> {
    const { store, dryRun, onAppend } = this.#options;
    if (dryRun) return appends.map(() => ({ kind: 'appended', revision: 0, position: 0 }));
    if (appends.length > 0) await onAppend?.();
    return store.append(appends);
  }

  /** The streams that may be new. A dry run reads all of them, since no conflict would reveal that one is not. */
  #beginning(byStream: ByStream<T>): ReadonlySet<string> {
    const { beginsStream, dryRun } = this.#options;
    if (beginsStream === undefined || dryRun) return new Set();
    const begins = ([first]: readonly UsableLine<T>[]) => first !== undefined && beginsStream(first.content);
    return new Set([...byStream].filter(([, lines]) => begins(lines)).map(([stream]) => stream));
  }

  /**
   * Plans in the order of the lines. Streams that are `supposedNew` are not read. The history of a stream is not kept, since it
   * may be much larger than the lines of the stream.
   */
  async #plans(byStream: ByStream<T>, supposedNew: ReadonlySet<string>): Promise<Plan<T, E>[]> {
    const plans = new Map<string, Plan<T, E>>();
    const atMs = this.#options.clock.now();
    const metadata = metadataOf(this.#author, atMs);
    const plan = (stream: string, history: readonly RecordedEvent[]): void => {
      const lines = byStream.get(stream) ?? [];
      plans.set(stream, this.#plan(stream, { history, lines, atMs, metadata }));
    };
    for (const stream of supposedNew) plan(stream, []);
    const toRead = [...byStream.keys()].filter((stream) => !supposedNew.has(stream));
    for await (const [stream, history] of readInParts(this.#options.store, toRead)) plan(stream, history);
    return [...byStream.keys()].flatMap((stream) => plans.get(stream) ?? []);
  }

  #plan(
    stream: string,
    {
      history,
      lines,
      atMs,
      metadata,
    }: {
      readonly history: readonly RecordedEvent[];
      readonly lines: readonly UsableLine<T>[];
      readonly atMs: number;
      readonly metadata: EventMetadata;
    },
  ): Plan<T, E> {
    const { decider, dryRun } = this.#options;
    const decide = this.#dryDeciders.get(stream) ?? decider(history);
    if (dryRun) this.#dryDeciders.set(stream, decide);
    const events: NewEvent[] = [];
    const decided: Plan<T, E>['decided'][number][] = [];
    for (const line of lines) {
      if (events.length >= APPEND_EVENTS) break;
      const decision = decide(line.content, atMs);
      decided.push({ line, decision });
      if (decision.kind !== 'events') continue;
      for (const event of decision.events) events.push(newEventWith(metadata, event));
    }
    const expected = history.at(-1)?.revision ?? 'none';
    return { append: { stream, expected, events }, decided, rest: lines.slice(decided.length) };
  }

  async #count({ append: { stream }, decided }: Plan<T, E>, isErased: boolean): Promise<void> {
    for (const { line, decision } of decided) {
      if (isErased) this.#refuse(line.number, `${stream} was erased and is never recorded again`);
      else if (decision.kind === 'refused') this.#refuse(line.number, `${stream}: ${decision.reason}`);
      else if (decision.kind === 'unchanged') this.counts.unchanged += 1;
      else {
        this.counts.recorded += 1;
        await this.#options.onRecorded?.(line.content, decision.events);
      }
    }
  }

  #refuse(lineNumber: number, reason: string): void {
    this.counts.refused += 1;
    this.#options.onRefused(lineNumber, reason);
  }
}
