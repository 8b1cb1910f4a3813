import { isMark } from '../../accounts/moved-store.ts';
import { FuelError } from '../../base/errors.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { Append, AppendResult, EventStore } from '../../event-store/event-store.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { placeOf, toCopied } from './copied-event.ts';
import { LogComparison } from './log-comparison.ts';

const ERASED_AT_ONCE = 50;
const MAX_NAMED = 10;

export interface EventCopyOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  readonly erasedStreams: readonly string[];
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
 * Copies the source's log and reads it back. What the target has already is compared first, and only the rest is
 * appended, so that an interruption costs no more than this reading. Nothing is appended to a target with events that
 * the source does not have, or that differ from the source's.
 */
export async function copyEvents(options: EventCopyOptions): Promise<EventCopy> {
  const { target, erasedStreams, onProgress } = options;
  const sourceEnd = await options.source.head();
  const comparison = comparisonOf(options, sourceEnd);
  await comparison.readTarget(await target.head());
  const { faults } = comparison;
  if (faults.length > 0) return { events: comparison.matched, sourceEnd, faults };
  await eraseAll(erasedStreams, target);
  let copied = comparison.matched;
  let targetEnd = 0;
  for await (const events of comparison.missing()) {
    targetEnd = Math.max(targetEnd, await appendCopies(events, target));
    copied += events.length;
    onProgress('events copied', copied);
  }
  await comparison.readTarget(targetEnd);
  return result(comparison, () => true, { ...options, sourceEnd });
}

/**
 * Compares what was copied before; `copyEnd` is where the target's log ended then. Changes nothing. Events that the
 * target has erased since are not missing, and neither is the source's mark.
 */
export async function verifyEvents(options: EventCopyOptions, copyEnd: Position): Promise<EventCopy> {
  const { source, target } = options;
  const sourceEnd = await source.head();
  const comparison = comparisonOf(options, sourceEnd);
  await comparison.readTarget(copyEnd);
  const isMissing = async (event: RecordedEvent): Promise<boolean> =>
    !isMark(event) && !(await target.isErased(event.stream));
  return result(comparison, isMissing, { ...options, sourceEnd });
}

/**
 * Appends events in the order of their log, each at its own revision; those that are there already change nothing.
 * Returns the position of the last of them in the target. Rejects with `REFUSED` where another event has the place.
 *
 * Who is owed a delivery depends on which of the account's events come before the transaction's in the log, and what was
 * sealed is proven by the order of all. So a stretch of events of transactions is appended before the next stretch of others
 * begins, and the reverse, and in a stretch each stream has one event: an engine records these as they were sent.
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

/** Cut wherever events of transactions and others meet, and before a stream comes again. */
export function stretchesOf(events: readonly RecordedEvent[]): RecordedEvent[][] {
  const stretches: RecordedEvent[][] = [];
  let ofTransactions: boolean | undefined;
  const streams = new Set<string>();
  for (const event of events) {
    const isOfTransaction = event.stream.startsWith(TRANSACTION_STREAMS);
    if (isOfTransaction === ofTransactions && !streams.has(event.stream)) stretches.at(-1)?.push(event);
    else {
      stretches.push([event]);
      streams.clear();
    }
    streams.add(event.stream);
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
  const { source, target, erasedStreams, onProgress } = options;
  const erased = new Set(erasedStreams);
  const compared = (matched: number): void => onProgress('events compared', matched);
  return new LogComparison({ source, target, sourceEnd, erased, onProgress: compared });
}

async function result(
  comparison: LogComparison,
  isMissing: (event: RecordedEvent) => boolean | Promise<boolean>,
  { target, erasedStreams, sourceEnd }: EventCopyOptions & { readonly sourceEnd: Position },
): Promise<EventCopy> {
  const faults = [...comparison.faults];
  for await (const events of comparison.missing()) {
    for (const event of events)
      if (await isMissing(event)) faults.push(`${placeOf(event)} (${event.type}) is not in the target`);
  }
  for (const stream of await notErased(erasedStreams, target))
    faults.push(`${stream} is erased here and not in the target`);
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
