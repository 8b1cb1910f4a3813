import { batchesOf, eventBytes } from '../event-store/batch-bytes.ts';
import type { EventStore, Position, RecordedEvent } from '../event-store/event-store.ts';
import { appendCopies } from './append-copies.ts';
import { placeOf } from './copied-event.ts';
import { LogComparison } from './log-comparison.ts';
import { readLog } from './read-log.ts';

/** Most events on their way at once; well within what a comparison can put in order again. */
const BATCH = 1_000;
const ERASED_AT_ONCE = 50;

export interface EventCopyOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  readonly erasedStreams: readonly string[];
  /** The place of the event that stands in the target already and is the same. */
  readonly first: string;
  readonly onProgress: (step: 'events compared' | 'events copied', done: number) => void;
}

export interface EventCopy {
  /** Events found in the target as they are in the source. */
  readonly events: number;
  /** Where the source's log ended. */
  readonly sourceEnd: Position;
  /** What is not the same, a line each. */
  readonly faults: readonly string[];
}

/**
 * Makes the target's log what the source's is, and reads it back: what stands there already is compared on the
 * way to the place where the copy goes on, the rest after it was appended. Nothing is appended to a target that
 * has events which the source does not have, or has otherwise. An interruption costs nothing but this reading.
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
 * Compares what was copied before; `copyEnd` is where the target's log ended then. Changes nothing. What was
 * erased in the target since is not missed.
 */
export async function verifyEvents(options: EventCopyOptions, copyEnd: Position): Promise<EventCopy> {
  const sourceEnd = await options.source.head();
  const comparison = comparisonOf(options, sourceEnd);
  try {
    await comparison.readTarget(copyEnd);
    await comparison.readSource();
    const streams = [...new Set(comparison.missing.map(({ stream }) => stream))];
    const kept = new Set(await notErased(streams, options.target));
    const missing = comparison.missing.filter(({ stream }) => kept.has(stream));
    return await result(comparison, missing, { ...options, sourceEnd });
  } finally {
    await comparison.close();
  }
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
  const open = await notErased(streams, target);
  for (let at = 0; at < open.length; at += ERASED_AT_ONCE) {
    await Promise.all(open.slice(at, at + ERASED_AT_ONCE).map((stream) => target.erase(stream)));
  }
}

async function notErased(streams: readonly string[], target: EventStore): Promise<string[]> {
  const open: string[] = [];
  for (let at = 0; at < streams.length; at += ERASED_AT_ONCE) {
    const some = streams.slice(at, at + ERASED_AT_ONCE);
    const erased = await Promise.all(some.map((stream) => target.isErased(stream)));
    for (const [index, stream] of some.entries()) if (erased[index] !== true) open.push(stream);
  }
  return open;
}
