import {
  type AllStreamResolvedEvent,
  type Filter,
  type RecordedEvent as StoredEvent,
  streamNameFilter,
} from '@eventstore/db-client';
import {
  ERASED_REVISION,
  type Position,
  type RecordedEvent,
  STREAM_ERASED,
  Unreadable,
} from '../../event-store.ts';

/** Every stream but the server's own. */
const USER_STREAMS = '^[^\\$]';
/**
 * How many events the server looks at before it says how far it got: many while it reads what is stored, so that
 * its readers are kept busy; each one while events come as they are recorded.
 */
const SEARCH_WINDOW = { stored: 2_000, live: 1 } as const;

export interface FilterOptions {
  /** As in `SubscribeOptions`. */
  readonly prefixes: readonly string[];
  readonly checkpointReached?: Filter['checkpointReached'];
  /** Which the subscription is for; `stored` unless given. */
  readonly pace?: keyof typeof SEARCH_WINDOW;
}

/** The server's own filter for these streams. */
export function filterOf({ prefixes, checkpointReached, pace = 'stored' }: FilterOptions): Filter {
  const rest = {
    maxSearchWindow: SEARCH_WINDOW[pace],
    checkpointInterval: 1,
    ...(checkpointReached === undefined ? {} : { checkpointReached }),
  };
  return prefixes.length === 0
    ? streamNameFilter({ regex: USER_STREAMS, ...rest })
    : streamNameFilter({ prefixes: [...prefixes], ...rest });
}

/** Whether the stream is one of those that `prefixes` stand for in `SubscribeOptions`, judged on this side. */
export function isWanted(stream: string, prefixes: readonly string[]): boolean {
  if (prefixes.length === 0) return !stream.startsWith('$');
  return prefixes.some((prefix) => stream.startsWith(prefix));
}

/** Undefined where the server did not say it: it does so for a link whose event it can no longer find. */
export function recordedOf({ event }: Pick<AllStreamResolvedEvent, 'event'>): RecordedEvent | undefined {
  return event === undefined ? undefined : toRecorded(event);
}

export function toRecorded(event: StoredEvent): RecordedEvent {
  const { type, streamId: stream, id, position } = event;
  const erasure = type === STREAM_ERASED;
  return {
    position: position === undefined ? Number.NaN : toPosition(position.commit),
    stream,
    revision: erasure ? ERASED_REVISION : toSafe(event.revision),
    id,
    type,
    data: erasure ? null : readable(event),
    metadata: erasure ? null : readableMetadata(event.metadata),
    recordedAtMs: event.created.getTime(),
  };
}

/** Commit and prepare position are the same for all that this service appends. */
export function toPosition(commit: bigint): Position {
  return toSafe(commit);
}

export function toSafe(value: bigint | string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is not a safe integer`);
  return number;
}

/**
 * The driver hands out bytes for what was not appended as JSON, and the text itself where it can not be parsed.
 * The data of this service's events is an object, never a text.
 */
function readable({ isJson, data }: StoredEvent): unknown {
  if (!isJson) return new Unreadable('data is not JSON: it was appended as bytes');
  if (typeof data === 'string') return new Unreadable('data is not JSON, or nothing but a text');
  return data;
}

function readableMetadata(metadata: unknown): unknown {
  return metadata instanceof Uint8Array ? new Unreadable('metadata is not JSON') : (metadata ?? null);
}

/** Where the server keeps how far a group is, or what it has parked. */
export function groupStream(group: string, record: 'checkpoint' | 'parked'): string {
  return `$persistentsubscription-$all::${group}-${record}`;
}
