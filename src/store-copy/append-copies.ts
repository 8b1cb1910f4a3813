import { TRANSACTION_STREAMS } from '../domain/transaction-events.ts';
import { FuelError } from '../errors.ts';
import type {
  Append,
  AppendResult,
  EventStore,
  Position,
  RecordedEvent,
} from '../event-store/event-store.ts';
import { placeOf, toCopied } from './copied-event.ts';

const MAX_NAMED = 10;

/**
 * Appends events, given in the order of their log, each at its own place in its stream; those that stand there
 * already change nothing. Says where the last of them stands in the target.
 *
 * Who is owed a delivery is decided by the account's events before the transaction's in the log. So nothing else
 * is on its way while events of transactions are appended, nor the other way round; within such a stretch streams
 * are appended side by side. Rejects with `REFUSED` where a place is taken by another event.
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

/** One event each: what an interruption left is then never half of what is appended next. */
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
