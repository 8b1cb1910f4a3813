import { ACCOUNT_STREAMS, accountStream, isAccountEventType } from '../domain/account-events.ts';
import { isOperationsEventType, OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { TRANSACTION_STREAMS, transactionStream } from '../domain/transaction-events.ts';
import { parseDateTime } from '../domain/values/date-time.ts';
import { printableData, recordedAt } from '../event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../event-store/event-store.ts';
import { readToEnd } from '../event-store/read-to-end.ts';

/** All that is given must hold. */
export interface AuditFilter {
  /** Events of the account's stream, and events elsewhere that name the account. */
  readonly accountId?: number | undefined;
  /** Events of the transaction's stream, and operations that name it. */
  readonly transactionId?: number | undefined;
  /** Any of them. */
  readonly types?: readonly string[] | undefined;
  /** When it was recorded; both inclusive, milliseconds. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** One event as an auditor reads it. `null` where the stored metadata does not say. */
export interface AuditLine {
  readonly stream: string;
  readonly revision: number;
  readonly at: string;
  readonly type: string;
  readonly actor: string | null;
  readonly command: string | null;
  readonly data: unknown;
}

/**
 * Yields the events that fit, in the order of the log: up to its present end, or with `follow` on and on
 * until the signal aborts.
 */
export async function* audit(
  store: EventStore,
  filter: AuditFilter,
  options: { readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<AuditLine> {
  for await (const event of candidates(store, filter, options)) {
    const line = toLine(event);
    if (fits(event, line, filter)) yield line;
  }
}

/** The events among which those asked for must be, read by the cheapest way. */
async function* candidates(
  store: EventStore,
  filter: AuditFilter,
  options: { readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<RecordedEvent> {
  if (filter.transactionId !== undefined && !options.follow) {
    const streams = await store.readStreams([transactionStream(filter.transactionId), OPERATIONS_STREAM]);
    yield* streams.flat().sort((a, b) => a.position - b.position);
    return;
  }
  const prefixes = [ACCOUNT_STREAMS, OPERATIONS_STREAM];
  if (!areElsewhere(filter.types)) prefixes.push(TRANSACTION_STREAMS);
  const { follow, signal } = options;
  const range = { prefixes, after: 0, signal };
  const batches = follow ? store.subscribe(range) : readToEnd(store, range);
  for await (const batch of batches) yield* batch.events;
}

/** Types that never stand in a transaction's stream: an auditor of an account then skips those. */
function areElsewhere(types: readonly string[] | undefined): boolean {
  return types?.every((type) => isAccountEventType(type) || isOperationsEventType(type)) === true;
}

function fits(event: RecordedEvent, line: AuditLine, filter: AuditFilter): boolean {
  const named = (field: string): unknown => (event.data as Record<string, unknown> | null)?.[field];
  const { accountId, transactionId, types, sinceMs, untilMs } = filter;
  if (types?.includes(event.type) === false) return false;
  if (
    accountId !== undefined &&
    event.stream !== accountStream(accountId) &&
    named('account_id') !== accountId
  ) {
    return false;
  }
  if (
    transactionId !== undefined &&
    event.stream !== transactionStream(transactionId) &&
    named('transaction_id') !== transactionId
  ) {
    return false;
  }
  const atMs = parseDateTime(line.at) ?? event.recordedAtMs;
  return (sinceMs === undefined || atMs >= sinceMs) && (untilMs === undefined || atMs <= untilMs);
}

function toLine(event: RecordedEvent): AuditLine {
  const metadata = (event.metadata ?? {}) as Readonly<Record<string, unknown>>;
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  return {
    stream: event.stream,
    revision: event.revision,
    at: recordedAt(event),
    type: event.type,
    actor: text(metadata.actor),
    command: text(metadata.command),
    data: printableData(event),
  };
}
