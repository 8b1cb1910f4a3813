import { ACCOUNT_STREAMS, accountStream, isAccountEventType } from '../domain/account-events.ts';
import { isOperationsEventType, OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { TRANSACTION_STREAMS, transactionStream } from '../domain/transaction-events.ts';
import { parseDateTime } from '../domain/values/date-time.ts';
import { printableData, recordedAt } from '../event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../event-store/event-store.ts';
import { readToEnd } from '../event-store/read-to-end.ts';

/** An event must match all that are given. */
export interface AuditFilter {
  /** Events of the account's stream, and events of other streams that name the account. */
  readonly accountId?: number | undefined;
  /** Events of the transaction's stream, and operations that name it. */
  readonly transactionId?: number | undefined;
  /** One of these types. */
  readonly types?: readonly string[] | undefined;
  /** When it happened; both inclusive, milliseconds. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** One event as an auditor reads it. `actor` and `command` are `null` where the metadata lacks them. */
export interface AuditLine {
  readonly stream: string;
  readonly revision: number;
  readonly at: string;
  readonly type: string;
  readonly actor: string | null;
  readonly command: string | null;
  readonly data: unknown;
}

/** Yields the matching events in the order of the log: up to its end, or with `follow` until the signal aborts. */
export async function* audit(
  store: EventStore,
  filter: AuditFilter,
  options: { readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<AuditLine> {
  for await (const event of candidates(store, filter, options)) {
    const line = toLine(event);
    if (matches(event, line, filter)) yield line;
  }
}

/** Events that may match, read in the cheapest way. */
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
  if (!areOfOtherStreams(filter.types)) prefixes.push(TRANSACTION_STREAMS);
  const { follow, signal } = options;
  const range = { prefixes, after: 0, signal };
  const batches = follow ? store.subscribe(range) : readToEnd(store, range);
  for await (const batch of batches) yield* batch.events;
}

/** Whether transaction streams never have events of these types, and need not be read. */
function areOfOtherStreams(types: readonly string[] | undefined): boolean {
  return types?.every((type) => isAccountEventType(type) || isOperationsEventType(type)) === true;
}

function matches(event: RecordedEvent, line: AuditLine, filter: AuditFilter): boolean {
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
