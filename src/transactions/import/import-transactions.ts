import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Decision } from '../../domain/decision.ts';
import {
  decideTransaction,
  evolveTransaction,
  NO_TRANSACTION,
  type TransactionState,
} from '../../domain/transaction.ts';
import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { decode } from '../../event-store/codec.ts';
import type { Append, EventStore, NewEvent, RecordedEvent } from '../../event-store/event-store.ts';
import { type Author, newEvent } from '../../event-store/new-event.ts';
import { readInParts } from '../../event-store/read-in-parts.ts';
import { type Line, readLines } from './lines.ts';
import { parseLine } from './parse-line.ts';

export interface ImportCounts {
  readonly recorded: number;
  readonly unchanged: number;
  readonly refused: number;
}

export interface ImportOptions {
  readonly store: Pick<EventStore, 'readStreams' | 'append'>;
  readonly input: AsyncIterable<Buffer>;
  readonly author: Author;
  readonly clock: Clock;
  readonly onRefused: (lineNumber: number, reason: string) => void;
  readonly onProgress: (counts: ImportCounts) => void;
  /** Ends the import between two batches. What was recorded stays; the same file can be imported again. */
  readonly signal: AbortSignal;
}

const BATCH_LINES = 1_000;
/** Of the lines' text; one line more, so that a batch has at least one. */
const BATCH_CHARACTERS = 4 * 1024 * 1024;
/** After a conflict another writer has made progress, so that many rounds mean that something is wrong. */
const MAX_ROUNDS = 100;

interface Candidate {
  readonly lineNumber: number;
  readonly stream: string;
  readonly event: TransactionEvent;
}

interface DecidedLine {
  readonly candidate: Candidate;
  readonly decision: Decision<TransactionEvent>;
}

/** What the lines about one transaction lead to, unless another writer appends to its stream meanwhile. */
interface Plan {
  readonly append: Append;
  readonly decided: readonly DecidedLine[];
}

/**
 * Records transaction events from lines of JSON, in batches. Each line is recorded, unchanged (the same was recorded
 * before) or refused with a reason, independently of the others. A repeated or interrupted import records only what is
 * missing.
 */
export async function importTransactions(options: ImportOptions): Promise<ImportCounts> {
  const importer = new Importer(options);
  try {
    for await (const batch of inBatches(readLines(options.input))) {
      if (options.signal.aborted) break;
      await importer.import(batch);
    }
  } catch (error) {
    // The signal may have ended the input while it was read.
    if (!options.signal.aborted || (error as Error).name !== 'AbortError') throw error;
  }
  return importer.counts;
}

async function* inBatches(input: AsyncIterable<readonly Line[]>): AsyncGenerator<readonly Line[]> {
  let batch: Line[] = [];
  let characters = 0;
  for await (const lines of input) {
    for (const line of lines) {
      batch.push(line);
      characters += 'text' in line ? line.text.length : 0;
      if (batch.length < BATCH_LINES && characters < BATCH_CHARACTERS) continue;
      yield batch;
      batch = [];
      characters = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

class Importer {
  readonly #options: ImportOptions;
  readonly #author: Author;
  #recorded = 0;
  #unchanged = 0;
  #refused = 0;

  constructor(options: ImportOptions) {
    this.#options = options;
    this.#author = { ...options.author, correlationId: options.author.correlationId ?? randomUUID() };
  }

  get counts(): ImportCounts {
    return { recorded: this.#recorded, unchanged: this.#unchanged, refused: this.#refused };
  }

  async import(lines: readonly Line[]): Promise<void> {
    let open: readonly Candidate[] = this.#parse(lines);
    for (let round = 0; open.length > 0; round++) {
      if (round === MAX_ROUNDS) throw new Error(`an import had a conflict in each of ${MAX_ROUNDS} rounds`);
      open = await this.#record(open);
    }
    this.#options.onProgress(this.counts);
  }

  #parse(lines: readonly Line[]): Candidate[] {
    const candidates: Candidate[] = [];
    for (const line of lines) {
      const parsed = 'fault' in line ? { ok: false as const, reason: line.fault } : parseLine(line.text);
      if (parsed.ok) candidates.push({ lineNumber: line.number, stream: parsed.stream, event: parsed.event });
      else this.#refuse(line.number, parsed.reason);
    }
    return candidates;
  }

  /** Decides each candidate by its stream and appends; returns the candidates of streams with a conflict. */
  async #record(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const { store } = this.#options;
    const plans = await this.#plans(Map.groupBy(candidates, (candidate) => candidate.stream));
    const planned = plans.filter(({ append }) => append.events.length > 0);
    const results = await store.append(planned.map(({ append }) => append));
    const resultOf = new Map(planned.map((plan, index) => [plan, results[index]]));
    return plans.flatMap((plan) => {
      const result = resultOf.get(plan);
      // What another writer has recorded may change the decision on every line of the stream.
      if (result?.kind === 'conflict') return plan.decided.map(({ candidate }) => candidate);
      this.#count(plan, result?.kind === 'erased');
      return [];
    });
  }

  /** What was read of a stream is not kept: it may be much more than the lines about it. */
  async #plans(byStream: ReadonlyMap<string, readonly Candidate[]>): Promise<Plan[]> {
    const plans: Plan[] = [];
    for await (const [stream, history] of readInParts(this.#options.store, [...byStream.keys()])) {
      plans.push(this.#plan(stream, history, byStream.get(stream) ?? []));
    }
    return plans;
  }

  #plan(stream: string, history: readonly RecordedEvent[], candidates: readonly Candidate[]): Plan {
    const events: NewEvent[] = [];
    const decided: DecidedLine[] = [];
    let state = stateOf(history);
    for (const candidate of candidates) {
      const decision = state === 'unreadable' ? UNREADABLE : decideTransaction(candidate.event, state);
      decided.push({ candidate, decision });
      if (decision.kind !== 'events' || state === 'unreadable') continue;
      state = evolveTransaction(state, candidate.event);
      events.push(newEvent(candidate.event, this.#author, this.#options.clock.now()));
    }
    const expected = history.at(-1)?.revision ?? 'none';
    return { append: { stream, expected, events }, decided };
  }

  #count({ append: { stream }, decided }: Plan, erased: boolean): void {
    for (const { candidate, decision } of decided) {
      if (erased) this.#refuse(candidate.lineNumber, `${stream} was erased and is never recorded again`);
      else if (decision.kind === 'refused')
        this.#refuse(candidate.lineNumber, `${stream}: ${decision.reason}`);
      else if (decision.kind === 'unchanged') this.#unchanged += 1;
      else this.#recorded += 1;
    }
  }

  #refuse(lineNumber: number, reason: string): void {
    this.#refused += 1;
    this.#options.onRefused(lineNumber, reason);
  }
}

const UNREADABLE = {
  kind: 'refused',
  reason: 'its stream holds an event that this version can not read',
} as const;

function stateOf(history: readonly RecordedEvent[]): TransactionState | 'unreadable' {
  let state: TransactionState = NO_TRANSACTION;
  for (const event of history) {
    const decoded = decode(event);
    if (!decoded.ok) return 'unreadable';
    state = evolveTransaction(state, { type: decoded.type, data: decoded.data } as TransactionEvent);
  }
  return state;
}
