import type { Clock } from '../../base/clock.ts';
import { world } from '../../base/world.ts';
import type { Decision } from '../../domain/decision.ts';
import type { EventMetadata } from '../../domain/events.ts';
import type { Append, AppendResult, EventStore, NewEvent } from '../../event-store/event-store.ts';
import { type Author, metadataOf, newEventWith, type RecordableEvent } from '../../event-store/new-event.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import type { NumberedLine } from './lines.ts';

/** Of lines; together they are those that were read. */
export interface LineCounts {
  readonly recorded: number;
  readonly unchanged: number;
  readonly refused: number;
}

/** Decides one line by the stream's events and the lines before it. `atMs`: when its events would be recorded. */
export type LineDecider<T, E extends RecordableEvent> = (content: T, atMs: number) => Decision<E>;

export interface RecordLinesOptions<T, E extends RecordableEvent> {
  readonly store: Pick<EventStore, 'readStreams' | 'append'>;
  /** In the order of the input. */
  readonly lines: AsyncIterable<readonly NumberedLine<T>[]>;
  readonly author: Author;
  readonly clock: Clock;
  /** For the lines about one stream, which follow in their order. Called again after a conflict. */
  readonly decider: (stream: string, history: readonly RecordedEvent[]) => LineDecider<T, E>;
  /** Whether a line causes an event where its stream has none. Where one comes first, its stream is read on conflict. */
  readonly beginsStream?: (content: T) => boolean;
  /** Reads what a line of the first lines would begin, too: where most are recorded already, nothing is appended in vain. */
  readonly readsFirst?: boolean | undefined;
  /** Judges every line as if those before it had been recorded, and records nothing. */
  readonly dryRun?: boolean | undefined;
  /** Of the text of the lines that are handled together; one line more, so that there is at least one. */
  readonly batchCharacters: number;
  readonly onRefused: (lineNumber: number, reason: string) => void;
  /** Called with each line that caused events, once they are recorded. */
  readonly onRecorded?: (content: T, events: readonly E[]) => Promise<void>;
  readonly onProgress: (counts: LineCounts) => void;
  /** Ends the work between two batches. What was recorded stays; the same input can be given again. */
  readonly signal: AbortSignal;
}

const BATCH_LINES = 1_000;
/** A stream gets no further line into its append after this many events; EventStoreDB takes 1 MiB in one. */
const APPEND_EVENTS = 500;
/** After a conflict another writer has made progress, so that many rounds mean that something is wrong. */
const MAX_ROUNDS = 100;

type Candidate<T> = Extract<NumberedLine<T>, { readonly ok: true }>;

interface DecidedLine<T, E> {
  readonly candidate: Candidate<T>;
  readonly decision: Decision<E>;
}

/** What the lines about one stream lead to, unless another writer appends to it meanwhile. */
interface Plan<T, E> {
  readonly append: Append;
  readonly decided: readonly DecidedLine<T, E>[];
  /** Lines for another append. */
  readonly rest: readonly Candidate<T>[];
}

interface Step {
  readonly atMs: number;
  readonly metadata: EventMetadata;
}

interface PlanOptions<T> extends Step {
  readonly stream: string;
  readonly history: readonly RecordedEvent[];
  readonly candidates: readonly Candidate<T>[];
}

/**
 * Records what lines of JSON ask for, in batches. Each line is recorded, unchanged or refused with a reason,
 * independently of the others. Repeated or interrupted work records only what is missing.
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
    // The signal may have ended the input while it was read.
    if (!options.signal.aborted || (error as Error).name !== 'AbortError') throw error;
  }
  return recorder.counts;
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
  #recorded = 0;
  #unchanged = 0;
  #refused = 0;
  /** Of the streams of the last batch that may have been new. A repeated import finds none: reading first costs it less. */
  #wereMostlyNew: boolean;
  /** Of a dry run: the deciders know what the lines before would have made of their streams. */
  readonly #deciders = new Map<string, LineDecider<T, E>>();

  constructor(options: RecordLinesOptions<T, E>) {
    this.#options = options;
    this.#wereMostlyNew = options.readsFirst !== true;
    this.#author = { ...options.author, correlationId: options.author.correlationId ?? world.randomUUID() };
  }

  get counts(): LineCounts {
    return { recorded: this.#recorded, unchanged: this.#unchanged, refused: this.#refused };
  }

  async record(lines: readonly NumberedLine<T>[]): Promise<void> {
    for (const line of lines) if (!line.ok) this.#refuse(line.number, line.reason);
    let open: readonly Candidate<T>[] = lines.filter((line) => line.ok);
    for (let round = 0; open.length > 0; round++) {
      if (round === MAX_ROUNDS) throw new Error(`an import had a conflict in each of ${MAX_ROUNDS} rounds`);
      open = await this.#round(open, round === 0);
    }
    this.#options.onProgress(this.counts);
  }

  /** Decides each candidate by its stream and appends; returns those that have to be decided again, or still. */
  async #round(candidates: readonly Candidate<T>[], isFirst: boolean): Promise<readonly Candidate<T>[]> {
    const byStream = Map.groupBy(candidates, (candidate) => candidate.stream);
    const maybeNew = isFirst ? this.#beginning(byStream) : new Set<string>();
    const plans = await this.#plans(byStream, this.#wereMostlyNew ? maybeNew : new Set());
    const planned = plans.filter(({ append }) => append.events.length > 0);
    const results = await this.#append(planned.map(({ append }) => append));
    const resultOf = new Map(planned.map((plan, index) => [plan, results[index]]));
    const open: Candidate<T>[] = [];
    let existed = 0;
    for (const plan of plans) {
      const result = resultOf.get(plan);
      const isConflict = result?.kind === 'conflict';
      if ((isConflict || plan.append.expected !== 'none') && maybeNew.has(plan.append.stream)) existed += 1;
      // What another writer has recorded may change the decision on every line of the stream.
      if (isConflict) for (const { candidate } of plan.decided) open.push(candidate);
      else await this.#count(plan, result?.kind === 'erased');
      for (const candidate of plan.rest) open.push(candidate);
    }
    if (maybeNew.size > 0) this.#wereMostlyNew = existed * 2 < maybeNew.size;
    return open;
  }

  async #append(appends: readonly Append[]): Promise<readonly AppendResult[]> {
    if (!this.#options.dryRun) return this.#options.store.append(appends);
    return appends.map(() => ({ kind: 'appended', revision: 0, position: 0 }));
  }

  /** In a dry run no conflict would tell that one is not new. */
  #beginning(byStream: ReadonlyMap<string, readonly Candidate<T>[]>): ReadonlySet<string> {
    const { beginsStream, dryRun } = this.#options;
    if (beginsStream === undefined || dryRun) return new Set();
    const begins = ([first]: readonly Candidate<T>[]) => first !== undefined && beginsStream(first.content);
    return new Set([...byStream].filter(([, candidates]) => begins(candidates)).map(([stream]) => stream));
  }

  /**
   * In the order of the lines. What is `supposedNew` is not read: a conflict tells where it is not. What was read of a
   * stream is not kept: it may be much more than the lines about it.
   */
  async #plans(
    byStream: ReadonlyMap<string, readonly Candidate<T>[]>,
    supposedNew: ReadonlySet<string>,
  ): Promise<Plan<T, E>[]> {
    const plans = new Map<string, Plan<T, E>>();
    const step = this.#step();
    const plan = (stream: string, history: readonly RecordedEvent[]) =>
      void plans.set(
        stream,
        this.#plan({ stream, history, candidates: byStream.get(stream) ?? [], ...step }),
      );
    for (const stream of supposedNew) plan(stream, []);
    const toRead = [...byStream.keys()].filter((stream) => !supposedNew.has(stream));
    for await (const [stream, history] of readInParts(this.#options.store, toRead)) plan(stream, history);
    return [...byStream.keys()].flatMap((stream) => plans.get(stream) ?? []);
  }

  /** When the events of one round happen, which share their metadata. */
  #step(): Step {
    const atMs = this.#options.clock.now();
    return { atMs, metadata: metadataOf(this.#author, atMs) };
  }

  #plan({ stream, history, candidates, atMs, metadata }: PlanOptions<T>): Plan<T, E> {
    const events: NewEvent[] = [];
    const decided: DecidedLine<T, E>[] = [];
    const decide = this.#deciders.get(stream) ?? this.#options.decider(stream, history);
    if (this.#options.dryRun) this.#deciders.set(stream, decide);
    for (const candidate of candidates) {
      if (events.length >= APPEND_EVENTS) break;
      const decision = decide(candidate.content, atMs);
      decided.push({ candidate, decision });
      if (decision.kind !== 'events') continue;
      for (const event of decision.events) events.push(newEventWith(metadata, event));
    }
    const expected = history.at(-1)?.revision ?? 'none';
    return { append: { stream, expected, events }, decided, rest: candidates.slice(decided.length) };
  }

  async #count({ append: { stream }, decided }: Plan<T, E>, erased: boolean): Promise<void> {
    for (const { candidate, decision } of decided) {
      if (erased) this.#refuse(candidate.number, `${stream} was erased and is never recorded again`);
      else if (decision.kind === 'refused') this.#refuse(candidate.number, `${stream}: ${decision.reason}`);
      else if (decision.kind === 'unchanged') this.#unchanged += 1;
      else {
        this.#recorded += 1;
        await this.#options.onRecorded?.(candidate.content, decision.events);
      }
    }
  }

  #refuse(lineNumber: number, reason: string): void {
    this.#refused += 1;
    this.#options.onRefused(lineNumber, reason);
  }
}
