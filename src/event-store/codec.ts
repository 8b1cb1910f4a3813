import { type DomainEventType, faultsOf, SCHEMA_VERSION, schemaOf } from '../domain/events.ts';
import { MAX_NESTING, nestsDeeperThan, shortened } from '../domain/values/bounds.ts';
import { formatDateTime, parseDateTime } from '../domain/values/date-time.ts';
import { type Position, type RecordedEvent, Unreadable } from './recorded-event.ts';

/** An event in the present version of its schema, or why that is not possible. */
export type Decoded =
  | {
      readonly ok: true;
      readonly type: DomainEventType;
      readonly data: unknown;
      /** As stored; `{}` where there is none. */
      readonly metadata: Readonly<Record<string, unknown>>;
    }
  | { readonly ok: false; readonly reason: string };

/** Converts data of one version to the next. Pure; may throw on data that was never valid. */
export type Upcaster = (data: unknown) => unknown;

export interface SchemaHistory {
  /** The version this code writes and the newest it reads. */
  readonly version: number;
  /** By event type and the version they convert from; without one, the data stays as it is. */
  readonly upcasters: Readonly<Record<string, Readonly<Record<number, Upcaster>>>>;
}

/** Far more than any readable event has, far less than overflows a stack. */
const MAX_PRINTED_NESTING = 1_000;
const FIRST_VERSION = 1; // also of events without a version
const production: SchemaHistory = { version: SCHEMA_VERSION, upcasters: {} };

/**
 * Reads a stored event of a known type; older versions are converted step by step, newer ones are refused. Never
 * throws. The data is not validated against its schema (see `decodeStrict`): the renderer checks each value itself.
 */
export function decode(event: RecordedEvent, history: SchemaHistory = production): Decoded {
  const { type, data } = event;
  if (data instanceof Unreadable) return refuse(data.reason);
  if (event.metadata instanceof Unreadable) return refuse(event.metadata.reason);
  if (!isKnown(type)) return refuse(`unknown event type ${type}`);
  // Before anything else, which may use recursion.
  if (nestsDeeperThan(data, MAX_NESTING)) return refuse(`data nests deeper than ${MAX_NESTING} levels`);
  if (nestsDeeperThan(event.metadata, MAX_NESTING)) {
    return refuse(`metadata nests deeper than ${MAX_NESTING} levels`);
  }
  const metadata = membersOf(event.metadata);
  const version = metadata.schema_version ?? FIRST_VERSION;
  if (!Number.isSafeInteger(version) || (version as number) < FIRST_VERSION) {
    return refuse(`schema_version must be an integer from ${FIRST_VERSION}, not ${JSON.stringify(version)}`);
  }
  if ((version as number) > history.version) {
    return refuse(
      `schema_version ${version} is newer than ${history.version}, the newest this program reads`,
    );
  }
  if (version === history.version) return { ok: true, type, data, metadata };
  const upcast = upcastData(event, version as number, history);
  return upcast.ok ? { ok: true, type, data: upcast.data, metadata } : upcast;
}

/** As `decode`, and the data must fit its type's schema; the reason lists every fault. */
export function decodeStrict(event: RecordedEvent, history: SchemaHistory = production): Decoded {
  const decoded = decode(event, history);
  if (!decoded.ok) return decoded;
  const schema = schemaOf(decoded.type);
  const faults = schema === undefined ? [] : faultsOf(schema, decoded.data);
  return faults.length === 0 ? decoded : refuse(faults.join('; '));
}

/** The data to print: `null` where it is not JSON, or nests too deep to be serialized. */
export function printableData({ data }: RecordedEvent): unknown {
  return data instanceof Unreadable || nestsDeeperThan(data, MAX_PRINTED_NESTING) ? null : data;
}

/** As `recordedAtMs`, ISO 8601 UTC. */
export function recordedAt(event: RecordedEvent): string {
  return formatDateTime(recordedAtMs(event));
}

/**
 * When the event happened, in milliseconds: by the clock of the command that caused it, which survives a copy to
 * another store, or else by the clock of the store that recorded it.
 */
export function recordedAtMs(event: RecordedEvent): number {
  const { at } = membersOf(event.metadata);
  const commandMs = typeof at === 'string' ? parseDateTime(at) : undefined;
  return commandMs ?? event.recordedAtMs;
}

/** Who recorded it: the login of who called, and beside it the name that `--actor` claimed. */
export function authorOf({ metadata }: Pick<RecordedEvent, 'metadata'>): string {
  const { actor, os_user: osUser } = membersOf(metadata);
  const login = osUser ?? actor;
  if (typeof login !== 'string') return 'unknown';
  return actor === login || typeof actor !== 'string' ? login : `${login} as ${actor}`;
}

/** Whether it stands in place of another event, which an engine could not change: nothing happened when it was recorded. */
export function isRewritten(event: RecordedEvent): boolean {
  return firstPosition(event) !== event.position;
}

/** Of the event, or of the one in whose place it stands. */
export function firstPosition({ position, metadata }: RecordedEvent): Position {
  const { recorded_position: first } = membersOf(metadata);
  return Number.isSafeInteger(first) ? (first as Position) : position;
}

/** The metadata of an event that is to stand in this one's place. */
export function rewrittenMetadata(event: RecordedEvent): Readonly<Record<string, unknown>> {
  return { ...membersOf(event.metadata), at: recordedAt(event), recorded_position: firstPosition(event) };
}

function upcastData(
  { type, data }: RecordedEvent,
  from: number,
  { version: to, upcasters }: SchemaHistory,
): { readonly ok: true; readonly data: unknown } | { readonly ok: false; readonly reason: string } {
  const steps = Object.hasOwn(upcasters, type) ? upcasters[type] : undefined;
  let upcast = data;
  for (let version = from; version < to; version++) {
    const step = steps?.[version];
    if (step === undefined) continue;
    try {
      upcast = step(upcast);
    } catch (error) {
      return refuse(`version ${version} of ${type} could not be converted: ${String(error)}`);
    }
  }
  return { ok: true, data: upcast };
}

function isKnown(type: string): type is DomainEventType {
  return schemaOf(type) !== undefined;
}

/** Of an event's metadata or data, whatever it is; none where it is no object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function refuse(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason: shortened(reason) };
}
