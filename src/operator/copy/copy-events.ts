import { FuelError } from '../../base/errors.ts';
import type { EventMetadata } from '../../domain/events.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import { parseDateTime } from '../../domain/values/date-time.ts';
import { membersOf } from '../../event-store/codec.ts';
import type { Append, AppendResult, EventStore, NewEvent } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { type RecordedEvent, textOfRef, Unreadable } from '../../event-store/recorded-event.ts';

const ERASED_AT_ONCE = 50;
const MAX_NAMED = 10;

export interface EventCopyOptions {
  readonly source: EventStore;
  readonly target: EventStore;
  readonly onCopied: (events: number) => void;
}

/** Appends all events of the source's log to the target's log. */
export async function copyEvents({ source, target, onCopied }: EventCopyOptions): Promise<void> {
  for await (const { events } of readToEnd(source, { prefixes: [], after: 0 })) {
    await appendCopies(events, target);
    if (events.length > 0) onCopied(events.length);
  }
}

/**
 * Appends events in the order of their log, each at its own revision. Events that are already there change nothing. Rejects with
 * `REFUSED` if another event has the place.
 *
 * The order must be kept: who is owed a delivery depends on which events of the account come before the transaction's, and seals
 * prove the order of all events. So a stretch of transaction events is appended before the next stretch of other events begins,
 * and vice versa. A stretch has one event of each stream, which an engine records in the order in which they were sent.
 */
export async function appendCopies(events: readonly RecordedEvent[], target: EventStore): Promise<void> {
  for (const stretch of stretchesOf(events)) {
    const results = await target.append(stretch.map(toAppend));
    const refused = stretch.flatMap((event, index) => refusal(event, results[index]));
    if (refused.length > 0) {
      const named = refused.slice(0, MAX_NAMED).join('; ');
      throw new FuelError(
        'REFUSED',
        `the target already has other events in place of ${refused.length} events: ${named}. Copy into an empty one`,
      );
    }
  }
}

/** Cuts events wherever transaction events and other events meet, and before a stream is repeated. */
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

/** Each append has one event, so that an interruption can't leave half of an append that the next run repeats. */
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

/** Erases the streams that are erased in the source, whether the target has them or not. */
export async function eraseStreams(streams: readonly string[], target: EventStore): Promise<void> {
  for (let at = 0; at < streams.length; at += ERASED_AT_ONCE) {
    await Promise.all(streams.slice(at, at + ERASED_AT_ONCE).map((stream) => target.erase(stream)));
  }
}

/**
 * The event as it is appended to the target, unchanged. Throws `REFUSED` for an event that is not JSON or does not say when it
 * happened: by the target's own time it would look new to webhooks and notices.
 */
export function toCopied(event: RecordedEvent): NewEvent {
  const { id, type, data, metadata } = event;
  const fault = [data, metadata].find((part) => part instanceof Unreadable);
  const refused = (why: string) => new FuelError('REFUSED', `${textOfRef(event)} can't be copied: ${why}`);
  if (fault !== undefined) throw refused(fault.reason);
  const { at } = membersOf(metadata);
  if (typeof at !== 'string' || parseDateTime(at) === undefined)
    throw refused('it does not say when it happened');
  return { id, type, data, metadata: metadata as EventMetadata };
}
