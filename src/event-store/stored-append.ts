import { FuelError } from '../base/errors.ts';
import type { Append, AppendResult } from './event-store.ts';
import { jsonUtf8, repeatingJson } from './new-event.ts';
import { type RecordedEvent, tooLong } from './recorded-event.ts';

/** A new event as an engine records it. Data and metadata are JSON. */
export interface StoredEvent {
  readonly id: string;
  readonly type: string;
  /** UTF-8. These are often bytes that were read, which need no conversion. */
  readonly data: Uint8Array;
  readonly metadata: string;
}

export type StoredAppend = Omit<Append, 'events'> & { readonly events: readonly StoredEvent[] };

/**
 * Converts the events of appends. An engine does so at once, since the caller may change its events after the call.
 * Throws `ITEM_REFUSED` for an event that could not be read again, and `RangeError` for an append without events.
 */
export function storedAppends(appends: readonly Append[]): StoredAppend[] {
  const metadataText = repeatingJson();
  return appends.map(({ events, ...target }) => {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    const stored = events.map(({ id, type, ...event }): StoredEvent => {
      const storing = { id, type, data: jsonUtf8(event.data), metadata: metadataText(event.metadata) };
      assertStorable(storing);
      return storing;
    });
    return { ...target, events: stored };
  });
}

/** Refuses also an event without a type, since drivers fail on it. */
function assertStorable({ type, data, metadata }: StoredEvent): void {
  const fault = tooLong('data', data.length) ?? tooLong('metadata', Buffer.byteLength(metadata));
  const reason = type === '' ? 'it has no type' : fault?.reason;
  if (reason !== undefined)
    throw new FuelError('ITEM_REFUSED', `the event store refuses an event: ${reason}`);
}

/** Returns the result of an earlier append of these events; `undefined` if `found` has others or not all of them. */
export function repeatedAppend(
  found: readonly Pick<RecordedEvent, 'id' | 'revision' | 'position'>[],
  events: readonly StoredEvent[],
): AppendResult | undefined {
  const last = found.at(-1);
  if (last === undefined || found.length !== events.length) return undefined;
  if (found.some(({ id }, at) => id !== events[at]?.id)) return undefined;
  return { kind: 'appended', revision: last.revision, position: last.position };
}
