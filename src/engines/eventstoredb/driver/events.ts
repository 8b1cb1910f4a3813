import { type Filter, type RecordedEvent as StoredEvent, streamNameFilter } from '@eventstore/db-client';
import {
  ERASED_REVISION,
  type Position,
  type RecordedEvent,
  STREAM_ERASED,
  storedText,
  Unreadable,
} from '../../../event-store/recorded-event.ts';
import { StoredContent } from './stored-content.ts';

/** Every stream but the server's own. */
const USER_STREAMS = '^[^\\$]';
/**
 * How many events the server looks at before it reports a checkpoint: many while it reads what is stored, so that it
 * works in large steps; one while it is live, so that the position follows each event of the log (0044).
 */
const SEARCH_WINDOW = { stored: 2_000, live: 1 } as const;

export interface FilterOptions {
  /** As in `SubscribeOptions`. */
  readonly prefixes: readonly string[];
  readonly phase: keyof typeof SEARCH_WINDOW;
  readonly checkpointReached: NonNullable<Filter['checkpointReached']>;
}

/** The server's own filter for these streams. */
export function filterOf({ prefixes, phase, checkpointReached }: FilterOptions): Filter {
  const rest = { maxSearchWindow: SEARCH_WINDOW[phase], checkpointInterval: 1, checkpointReached };
  return prefixes.length === 0
    ? streamNameFilter({ regex: USER_STREAMS, ...rest })
    : streamNameFilter({ prefixes: [...prefixes], ...rest });
}

/** As `filterOf`, decided by this process: whether `prefixes` select the stream. */
export function isWanted(stream: string, prefixes: readonly string[]): boolean {
  if (prefixes.length === 0) return !stream.startsWith('$');
  return prefixes.some((prefix) => stream.startsWith(prefix));
}

/** Undefined for a link whose event is gone: the server sends the link alone. `unparsed` as in `SubscribeOptions`. */
export function recordedOf(
  { event }: { readonly event?: StoredEvent | undefined },
  unparsed?: boolean,
): RecordedEvent | undefined {
  return event === undefined ? undefined : toRecorded(event, unparsed);
}

export function toRecorded(event: StoredEvent, unparsed = false): RecordedEvent {
  const { type, streamId: stream, id, position, data: content } = event;
  if (!(content instanceof StoredContent)) throw new TypeError(`the content of ${stream} was parsed already`);
  const { faults, metadata } = content;
  // The server marks an erasure beyond all revisions that it gives to what is appended.
  const erasure = type === STREAM_ERASED && event.revision > BigInt(ERASED_REVISION);
  return {
    position: position === undefined ? Number.NaN : toPosition(position.commit),
    stream,
    revision: erasure ? ERASED_REVISION : toSafe(event.revision),
    id,
    type,
    data: erasure ? null : (faults.data ?? (unparsed ? content : dataIn(content))),
    metadata: erasure ? null : (faults.metadata ?? (unparsed ? metadata : metadataIn(metadata))),
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

/** Data of this service's events is always an object. */
function dataIn(content: StoredContent): unknown {
  if (!content.isJson) return new Unreadable('data is not JSON: it was appended as bytes');
  return parse(content, 'data');
}

function metadataIn(bytes: Uint8Array): unknown {
  return bytes.length === 0 ? null : parse(bytes, 'metadata');
}

function parse(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(storedText(bytes));
  } catch {
    return new Unreadable(`${what} is not JSON`); // the error's own message quotes personal data
  }
}

/** The stream in which the server keeps links to what a group has parked. */
export function parkedStream(group: string): string {
  return `$persistentsubscription-$all::${group}-parked`;
}
