import { FuelError } from '../../base/errors.ts';
import type { EventMetadata } from '../../domain/events.ts';
import { formatDateTime, parseDateTime } from '../../domain/values/date-time.ts';
import { sameJson } from '../../domain/values/same-json.ts';
import type { NewEvent } from '../../event-store/event-store.ts';
import { type RecordedEvent, Unreadable } from '../../event-store/recorded-event.ts';

/** An event's stream and revision, the same in every store that has it: `account-7@3`. */
export function placeOf({ stream, revision }: Pick<RecordedEvent, 'stream' | 'revision'>): string {
  return `${stream}@${revision}`;
}

/**
 * The event as it is appended to the target: unchanged, but where its metadata has no time it gets the time at which
 * the source recorded it. With the target's own time old events would look new to webhooks and notices. Throws
 * `REFUSED` for an event that is not JSON.
 */
export function toCopied(event: RecordedEvent): NewEvent {
  const { id, type, data, metadata } = event;
  const fault = [data, metadata].find((part) => part instanceof Unreadable);
  if (fault !== undefined) {
    throw new FuelError('REFUSED', `${placeOf(event)} can't be copied: ${fault.reason}`);
  }
  return { id, type, data, metadata: dated(metadata, event.recordedAtMs) as EventMetadata };
}

/** What differs between an event and its copy, `undefined` where nothing does. */
export function differenceBetween(source: RecordedEvent, target: RecordedEvent): string | undefined {
  const copied = toCopied(source);
  if (copied.id !== target.id) return 'it is another event';
  if (copied.type !== target.type) return `its type is ${target.type} and should be ${copied.type}`;
  if (!sameJson(copied.data, target.data)) return 'its data differs';
  return sameJson(copied.metadata, target.metadata) ? undefined : 'its metadata differs';
}

function dated(metadata: unknown, recordedAtMs: number): unknown {
  const members = typeof metadata === 'object' && metadata !== null ? metadata : {};
  const at = 'at' in members ? members.at : undefined;
  if (typeof at === 'string' && parseDateTime(at) !== undefined) return metadata;
  return { ...members, at: formatDateTime(recordedAtMs) };
}
