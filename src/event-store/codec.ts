import { type DomainEventType, faultsOf, SCHEMA_VERSION, schemaOf } from '../domain/events.ts';
import { MAX_NESTING, nestsDeeperThan, shortened } from '../domain/values/bounds.ts';
import { formatDateTime, parseDateTime } from '../domain/values/date-time.ts';
import { type Position, type RecordedEvent, Unreadable } from './recorded-event.ts';

/** An event of a known type, or why it can't be read. */
export type Decoded =
  | {
      readonly ok: true;
      readonly type: DomainEventType;
      readonly data: unknown;
      /** The stored metadata; `{}` if there is none. */
      readonly metadata: Readonly<Record<string, unknown>>;
    }
  | { readonly ok: false; readonly reason: string };

/** Deeper than any readable event, but not deep enough to overflow the stack. */
const MAX_PRINTED_NESTING = 1_000;
/** The version of events that do not name one, such as those of the core system. */
const FIRST_VERSION = 1;

/**
 * Decodes a stored event of a known type. An event of a newer version is refused. Never throws. The data is not
 * validated against its schema (see `decodeStrict`), since the renderer checks each value itself.
 */
export function decode(event: RecordedEvent): Decoded {
  const { type, data } = event;
  if (data instanceof Unreadable) return refuse(data.reason);
  if (event.metadata instanceof Unreadable) return refuse(event.metadata.reason);
  if (!isKnown(type)) return refuse(`unknown event type ${type}`);
  // This comes first, since everything after it may use recursion.
  if (nestsDeeperThan(data, MAX_NESTING)) return refuse(`data nests deeper than ${MAX_NESTING} levels`);
  if (nestsDeeperThan(event.metadata, MAX_NESTING)) {
    return refuse(`metadata nests deeper than ${MAX_NESTING} levels`);
  }
  const metadata = membersOf(event.metadata);
  const version = metadata.schema_version ?? FIRST_VERSION;
  if (!Number.isSafeInteger(version) || (version as number) < FIRST_VERSION) {
    return refuse(`schema_version must be an integer from ${FIRST_VERSION}, not ${JSON.stringify(version)}`);
  }
  if ((version as number) > SCHEMA_VERSION) {
    return refuse(`schema_version ${version} is newer than ${SCHEMA_VERSION}, the newest this program reads`);
  }
  // Data of an older version is converted here, once there is one.
  return { ok: true, type, data, metadata };
}

/** Decodes an event like `decode`, but its data must also fit the schema of its type. The reason lists every fault. */
export function decodeStrict(event: RecordedEvent): Decoded {
  const decoded = decode(event);
  if (!decoded.ok) return decoded;
  const schema = schemaOf(decoded.type);
  const faults = schema === undefined ? [] : faultsOf(schema, decoded.data);
  return faults.length === 0 ? decoded : refuse(faults.join('; '));
}

/** The data to print; `null` if it is not JSON or is nested too deep to be serialized. */
export function printableData({ data }: RecordedEvent): unknown {
  return data instanceof Unreadable || nestsDeeperThan(data, MAX_PRINTED_NESTING) ? null : data;
}

/** Returns the time of `occurredAtMs` in ISO 8601 (UTC). */
export function occurredAt(event: RecordedEvent): string {
  return formatDateTime(occurredAtMs(event));
}

/**
 * Returns when the event happened, in milliseconds. The time is that of the command that caused the event, which
 * survives a copy to another store, or else that of the store that recorded it.
 */
export function occurredAtMs(event: RecordedEvent): number {
  const { at } = membersOf(event.metadata);
  const commandMs = typeof at === 'string' ? parseDateTime(at) : undefined;
  return commandMs ?? event.recordedAtMs;
}

/** Returns who recorded the event: the caller's login, and the name given with `--actor` if that is different. */
export function authorOf({ metadata }: Pick<RecordedEvent, 'metadata'>): string {
  const { actor, os_user: osUser } = membersOf(metadata);
  const login = osUser ?? actor;
  if (typeof login !== 'string') return 'unknown';
  return actor === login || typeof actor !== 'string' ? login : `${login} as ${actor}`;
}

/**
 * True if the event replaces an earlier one that the engine could not change. Nothing happened when it was recorded.
 */
export function isRewritten(event: RecordedEvent): boolean {
  return firstPosition(event) !== event.position;
}

/** Returns the position of the event, or of the event that it replaces. */
export function firstPosition({ position, metadata }: RecordedEvent): Position {
  const { recorded_position: first } = membersOf(metadata);
  return Number.isSafeInteger(first) ? (first as Position) : position;
}

/** Returns the metadata for an event that replaces this one. */
export function rewrittenMetadata(event: RecordedEvent): Readonly<Record<string, unknown>> {
  return { ...membersOf(event.metadata), at: occurredAt(event), recorded_position: firstPosition(event) };
}

function isKnown(type: string): type is DomainEventType {
  return schemaOf(type) !== undefined;
}

/** Returns the members of an event's metadata or data; none if it is not an object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function refuse(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason: shortened(reason) };
}
