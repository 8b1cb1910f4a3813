import { isMark } from '../../accounts/moved-store.ts';
import { FuelError } from '../../base/errors.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { batchesOf, eventBytes } from '../../event-store/batch-bytes.ts';
import type {
  Append,
  AppendResult,
  EventStore,
  Position,
  RecordedEvent,
} from '../../event-store/event-store.ts';
import { placeOf, toCopied } from './copied-event.ts';
import { LogComparison, readLog } from './log-comparison.ts';

/** Well within the comparison's window, which has to put the events of a batch in order again. */
const BATCH = 1_000;
const ERASED_AT_ONCE = 50;
const MAX_NAMED = 10;

export interface EventCopyOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  readonly erasedStreams: readonly string[];
  /** The place of the event that names the store: it is in the target already and the same. */
  readonly first: string;
  readonly onProgress: (step: 'events compared' | 'events copied', done: number) => void;
}

export interface EventCopy {
  /** Events that are the same in the target as in the source. */
  readonly events: number;
  /** Where the source's log ended. */
  readonly sourceEnd: Position;
  /** What differs, one line each. */
  readonly faults: readonly string[];
}

/**
 * Copies the source's log and reads it back. What the target has already is compared first, and the copy continues
 * from there; the rest is compared after it was appended. Nothing is appended to a target with events that the
 * source does not have, or that differ from the source's. So an interruption costs no more than this reading.
 */
export async function copyEvents(options: EventCopyOptions): Promise<EventCopy> {
  const { source, target, erasedStreams, onProgress } = options;
  const sourceEnd = await source.head();
  const comparison = comparisonOf(options, sourceEnd);
  try {
    await comparison.readTarget(await target.head());
    const before = comparison.faults;
    if (before.length > 0) return { events: comparison.matched, sourceEnd, faults: before };
    await eraseAll(erasedStreams, target);
    let copied = comparison.matched;
    let targetEnd = 0;
    for await (const events of remaining(comparison, source, sourceEnd)) {
      targetEnd = Math.max(targetEnd, await appendCopies(events, target));
      copied += events.length;
      onProgress('events copied', copied);
    }
    await comparison.readTarget(targetEnd);
    await comparison.readSource();
    return await result(comparison, comparison.missing, { ...options, sourceEnd });
  } finally {
    await comparison.close();
  }
}

/**
 * Compares what was copied before; `copyEnd` is where the target's log ended then. Changes nothing. Events that the
 * target has erased since are not missing, and neither is the source's mark.
 */
export async function verifyEvents(options: EventCopyOptions, copyEnd: Position): Promise<EventCopy> {
  const sourceEnd = await options.source.head();
  const comparison = comparisonOf(options, sourceEnd);
  try {
    await comparison.readTarget(copyEnd);
    await comparison.readSource();
    const streams = [...new Set(comparison.missing.map(({ stream }) => stream))];
    const kept = new Set(await notErased(streams, options.target));
    const missing = comparison.missing.filter((event) => kept.has(event.stream) && !isMark(event));
    return await result(comparison, missing, { ...options, sourceEnd });
  } finally {
    await comparison.close();
  }
}

/**
 * Appends events in the order of their log, each at its own revision; those that are there already change nothing.
 * Returns the position of the last of them in the target. Rejects with `REFUSED` where another event has the place.
 *
 * Who is owed a delivery depends on which of the account's events come before the transaction's in the log. So a
 * stretch of events of transactions is appended before the next stretch of others begins, and the reverse; within
 * a stretch the order between streams does not matter.
 */
export async function appendCopies(events: readonly RecordedEvent[], target: EventStore): Promise<Position> {
  let end = 0;
  for (const stretch of stretchesOf(events)) {
    const results = await target.append(stretch.map(toAppend));
    const refused = stretch.flatMap((event, index) => refusal(event, results[index]));
    if (refused.length > 0) {
      const named = refused.slice(0, MAX_NAMED).join('; ');
      throw new FuelError('REFUSED', `the target took ${refused.length} events otherwise: ${named}`);
    }
    for (const result of results) if (result.kind === 'appended') end = Math.max(end, result.position);
  }
  return end;
}

/** Cut wherever events of transactions and others meet. */
export function stretchesOf(events: readonly RecordedEvent[]): RecordedEvent[][] {
  const stretches: RecordedEvent[][] = [];
  let ofTransactions: boolean | undefined;
  for (const event of events) {
    const isOfTransaction = event.stream.startsWith(TRANSACTION_STREAMS);
    if (isOfTransaction === ofTransactions) stretches.at(-1)?.push(event);
    else stretches.push([event]);
    ofTransactions = isOfTransaction;
  }
  return stretches;
}

/** One event each: an interruption can't leave half of an append that the next run repeats. */
function toAppend(event: RecordedEvent): Append {
  const { stream, revision } = event;
  return { stream, expected: revision === 0 ? 'none' : revision - 1, events: [toCopied(event)] };
}

function refusal(event: RecordedEvent, result: AppendResult | undefined): string[] {
  if (result?.kind === 'conflict') {
    const actual = result.actual === undefined ? 'does not exist' : `ends at ${result.actual}`;
    return [`${placeOf(event)}, whose stream ${actual} there`];
  }
  return result?.kind === 'appended' ? [] : [`${placeOf(event)}, whose stream is erased there`];
}

function comparisonOf(options: EventCopyOptions, sourceEnd: Position): LogComparison {
  const { source, target, first, erasedStreams, onProgress } = options;
  return new LogComparison({
    source,
    target,
    sourceEnd,
    first,
    erased: new Set(erasedStreams),
    onProgress: (matched) => onProgress('events compared', matched),
  });
}

/** What is left to append, in the order of the source's log. */
async function* remaining(
  { missing, sourcePosition }: LogComparison,
  source: EventStore,
  sourceEnd: Position,
): AsyncGenerator<readonly RecordedEvent[]> {
  yield* batchesOf(missing, { most: BATCH, bytesOf: eventBytes });
  for await (const { events } of readLog(source, { after: sourcePosition, upTo: sourceEnd })) yield events;
}

async function result(
  comparison: LogComparison,
  missing: readonly RecordedEvent[],
  { target, erasedStreams, sourceEnd }: EventCopyOptions & { readonly sourceEnd: Position },
): Promise<EventCopy> {
  const unerased = await notErased(erasedStreams, target);
  const faults = [
    ...comparison.faults,
    ...missing.map((event) => `${placeOf(event)} (${event.type}) is not in the target`),
    ...unerased.map((stream) => `${stream} is erased here and not in the target`),
  ];
  return { events: comparison.matched, sourceEnd, faults };
}

async function eraseAll(streams: readonly string[], target: EventStore): Promise<void> {
  const remaining = await notErased(streams, target);
  for (let at = 0; at < remaining.length; at += ERASED_AT_ONCE) {
    await Promise.all(remaining.slice(at, at + ERASED_AT_ONCE).map((stream) => target.erase(stream)));
  }
}

async function notErased(streams: readonly string[], target: EventStore): Promise<string[]> {
  const found: string[] = [];
  for (let at = 0; at < streams.length; at += ERASED_AT_ONCE) {
    const some = streams.slice(at, at + ERASED_AT_ONCE);
    const erased = await Promise.all(some.map((stream) => target.isErased(stream)));
    for (const [index, stream] of some.entries()) if (erased[index] !== true) found.push(stream);
  }
  return found;
}
