import { type Clock, systemClock } from '../../base/clock.ts';
import { ACCOUNT_STREAMS, accountStream, isAccountEventType } from '../../domain/account-events.ts';
import {
  IMPORTS_STREAMS,
  isOperationsEventType,
  NOTICES_STREAMS,
  OPERATIONS_STREAM,
  SEALS_STREAM,
} from '../../domain/operations-events.ts';
import { type WithDriver, withoutDriver } from '../../domain/transaction.ts';
import { TRANSACTION_STREAMS, transactionStream } from '../../domain/transaction-events.ts';
import { membersOf, occurredAt, occurredAtMs, printableData } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import { RedactedDrivers } from '../../push/fan-out/redacted-drivers.ts';

const BACKWARDS_STEP = 500;

/** An event must match all that are given. */
export interface AuditFilter {
  /** Selects events of the account's stream, and events of other streams that name the account. */
  readonly accountId?: number | undefined;
  /** Selects events of the transaction's stream, and operations that name it. */
  readonly transactionId?: number | undefined;
  /** Selects events about the key with this prefix. */
  readonly prefix?: string | undefined;
  /** The login, or the name that `--actor` gave. */
  readonly actor?: string | undefined;
  /** One of these types. */
  readonly types?: readonly string[] | undefined;
  /** When the event was recorded, in milliseconds; both ends are included. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

export interface AuditOptions {
  readonly follow: boolean;
  /** True to read the newest events first. Can't be combined with `follow`. */
  readonly newest?: boolean;
  readonly signal: AbortSignal;
  /** Tells when a range is over; the system's clock unless given. */
  readonly clock?: Clock;
}

/**
 * Yields the matching events in the order of the log, up to its end. With `follow` it continues until the signal aborts or
 * no later event can be in the range.
 */
export async function* audit(
  store: EventStore,
  filter: AuditFilter,
  options: AuditOptions,
): AsyncGenerator<AuditLine> {
  const redacted = new RedactedDrivers(store);
  for await (const event of candidates(store, filter, options)) {
    if (options.signal.aborted) return;
    if (!matches(event, filter)) continue;
    await redacted.look();
    yield auditLine(
      redacted.has(event) ? { ...event, data: withoutDriver(event.data as WithDriver) } : event,
    );
  }
}

/** Yields events that may match, read in the cheapest way. */
async function* candidates(
  store: EventStore,
  filter: AuditFilter,
  { follow, newest = false, signal, clock = systemClock }: AuditOptions,
): AsyncGenerator<RecordedEvent> {
  if (filter.transactionId !== undefined && !follow) {
    const streams = await store.readStreams([transactionStream(filter.transactionId), OPERATIONS_STREAM]);
    const events = streams.flat().sort((a, b) => a.position - b.position);
    yield* newest ? events.reverse() : events;
    return;
  }
  const prefixes = streamsOf(filter);
  if (newest) {
    yield* readNewest(store, prefixes, signal);
    return;
  }
  const range = { prefixes, after: 0, signal };
  const batches = follow ? store.subscribe(range) : readToEnd(store, range);
  for await (const { events, caughtUp } of batches) {
    yield* events;
    if (follow && caughtUp && clock.now() > (filter.untilMs ?? Infinity)) return;
  }
}

/**
 * The prefixes of the streams that may have matching events. A seal repeats the hashes of up to thousands of events, so seals are
 * read only if the type asks for them.
 */
function streamsOf({ prefix, types }: AuditFilter): string[] {
  const prefixes = [ACCOUNT_STREAMS, OPERATIONS_STREAM, IMPORTS_STREAMS, NOTICES_STREAMS];
  if (prefix === undefined && !areOfOtherStreams(types)) prefixes.push(TRANSACTION_STREAMS);
  if (types?.includes('LogSealed')) prefixes.push(SEALS_STREAM);
  return prefixes;
}

async function* readNewest(
  store: EventStore,
  prefixes: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent> {
  let before: Position | undefined;
  while (!signal.aborted) {
    const batch = await store.readBackwards({ prefixes, before, limit: BACKWARDS_STEP });
    yield* batch.events;
    if (batch.atStart) return;
    before = batch.position;
  }
}

/** True if transaction streams never have events of these types, so that they need not be read. */
function areOfOtherStreams(types: readonly string[] | undefined): boolean {
  return types?.every((type) => isAccountEventType(type) || isOperationsEventType(type)) === true;
}

function matches(event: RecordedEvent, filter: AuditFilter): boolean {
  const { accountId, transactionId, prefix, actor, types, sinceMs, untilMs } = filter;
  const names = (field: string, value: string | number): boolean => membersOf(event.data)[field] === value;
  if (types?.includes(event.type) === false) return false;
  const { actor: claimed, os_user: login } = membersOf(event.metadata);
  if (actor !== undefined && claimed !== actor && login !== actor) return false;
  if (prefix !== undefined && !names('prefix', prefix)) return false;
  const isOf = (stream: string, field: string, id: number | undefined): boolean =>
    id === undefined || event.stream === stream || names(field, id);
  if (!isOf(accountStream(accountId ?? 0), 'account_id', accountId)) return false;
  if (!isOf(transactionStream(transactionId ?? 0), 'transaction_id', transactionId)) return false;
  if (sinceMs === undefined && untilMs === undefined) return true;
  const atMs = occurredAtMs(event);
  return (sinceMs === undefined || atMs >= sinceMs) && (untilMs === undefined || atMs <= untilMs);
}

export type AuditLine = ReturnType<typeof auditLine>;

/** An event as an auditor reads it. A member that the metadata lacks is `null`. */
export function auditLine(event: RecordedEvent) {
  const metadata = membersOf(event.metadata);
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  return {
    stream: event.stream,
    revision: event.revision,
    at: occurredAt(event),
    type: event.type,
    actor: text(metadata.actor),
    os_user: text(metadata.os_user),
    command: text(metadata.command),
    correlation_id: text(metadata.correlation_id),
    data: printableData(event),
  };
}
