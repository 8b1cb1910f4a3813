import { type Filter, type RecordedEvent as StoredEvent, streamNameFilter } from '@eventstore/db-client';
import {
  ERASED_REVISION,
  type Position,
  parseStored,
  type RecordedEvent,
  STREAM_ERASED,
  storedText,
  Unreadable,
} from '../../../event-store/recorded-event.ts';
import { StoredContent } from './stored-content.ts';

/** Matches every stream except the server's own. */
const USER_STREAMS = '^[^\\$]';
/**
 * How many events the server looks at before it reports a checkpoint. While it reads stored events these are many, so
 * that it works in large steps. While it is live it is one, so that the position follows each event of the log (0044).
 */
const SEARCH_WINDOW = { stored: 2_000, live: 1 } as const;

export interface FilterOptions {
  /** The prefixes of `SubscribeOptions`. */
  readonly prefixes: readonly string[];
  readonly phase: keyof typeof SEARCH_WINDOW;
  readonly checkpointReached: NonNullable<Filter['checkpointReached']>;
}

/** Makes the filter with which the server selects these streams. */
export function filterOf({ prefixes, phase, checkpointReached }: FilterOptions): Filter {
  const rest = { maxSearchWindow: SEARCH_WINDOW[phase], checkpointInterval: 1, checkpointReached };
  return prefixes.length === 0
    ? streamNameFilter({ regex: USER_STREAMS, ...rest })
    : streamNameFilter({ prefixes: [...prefixes], ...rest });
}

/** Returns `undefined` for a link whose event is gone. `unparsed` is that of `SubscribeOptions`. */
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
  // The server's mark of an erasure has a revision above those that appended events can have.
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

/** The commit and prepare positions are the same for everything that this service appends. */
export function toPosition(commit: bigint): Position {
  return toSafe(commit);
}

export function toSafe(value: bigint | string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is not a safe integer`);
  return number;
}

/** The data of this service's events is always an object. */
function dataIn(content: StoredContent): unknown {
  if (!content.isJson) return new Unreadable('data is not JSON: it was appended as bytes');
  return parseStored('data', storedText(content));
}

function metadataIn(bytes: Uint8Array): unknown {
  return bytes.length === 0 ? null : parseStored('metadata', storedText(bytes));
}

/** Returns the stream in which the server keeps links to the events that a group has parked. */
export function parkedStream(group: string): string {
  return `$persistentsubscription-$all::${group}-parked`;
}
