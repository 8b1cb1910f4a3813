import { FuelError } from '../../base/errors.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { Append, AppendResult, EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { type Position, type RecordedEvent, textOfRef } from '../../event-store/recorded-event.ts';
import { toCopied } from './copied-event.ts';

const ERASED_AT_ONCE = 50;
const MAX_NAMED = 10;

export interface EventCopyOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  /** What is copied already. */
  readonly after: Position;
  readonly onCopied: (events: number) => void;
}

/** Appends what the source's log has after a position to the target's. */
export async function copyEvents({ source, target, after, onCopied }: EventCopyOptions): Promise<void> {
  for await (const { events } of readToEnd(source, { prefixes: [], after })) {
    await appendCopies(events, target);
    if (events.length > 0) onCopied(events.length);
  }
}

/**
 * Appends events in the order of their log, each at its own revision; those that are there already change nothing. Rejects with
 * `REFUSED` where another event has the place.
 *
 * Who is owed a delivery depends on which of the account's events come before the transaction's in the log, and what was
 * sealed is proven by the order of all. So a stretch of events of transactions is appended before the next stretch of others
 * begins, and the reverse, and in a stretch each stream has one event: an engine records these as they were sent.
 */
export async function appendCopies(events: readonly RecordedEvent[], target: EventStore): Promise<void> {
  for (const stretch of stretchesOf(events)) {
    const results = await target.append(stretch.map(toAppend));
    const refused = stretch.flatMap((event, index) => refusal(event, results[index]));
    if (refused.length > 0) {
      const named = refused.slice(0, MAX_NAMED).join('; ');
      throw new FuelError('REFUSED', `the target took ${refused.length} events otherwise: ${named}`);
    }
  }
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
    return [`${textOfRef(event)}, whose stream ${actual} there`];
  }
  return result?.kind === 'appended' ? [] : [`${textOfRef(event)}, whose stream is erased there`];
}

/** Streams that are erased in the source are erased in the target too, whether it has them or not. */
export async function eraseStreams(streams: readonly string[], target: EventStore): Promise<void> {
  for (let at = 0; at < streams.length; at += ERASED_AT_ONCE) {
    await Promise.all(
      streams.slice(at, at + ERASED_AT_ONCE).map(async (stream) => {
        if (!(await target.isErased(stream))) await target.erase(stream);
      }),
    );
  }
}
