import { FuelError } from '../../base/errors.ts';
import type { EventMetadata } from '../../domain/events.ts';
import { parseDateTime } from '../../domain/values/date-time.ts';
import { membersOf } from '../../event-store/codec.ts';
import type { NewEvent } from '../../event-store/event-store.ts';
import { type RecordedEvent, textOfRef, Unreadable } from '../../event-store/recorded-event.ts';

/**
 * The event as it is appended to the target: unchanged. Throws `REFUSED` for one that is not JSON, or does not say when it
 * happened: by the target's own time it would look new to webhooks and notices.
 */
export function toCopied(event: RecordedEvent): NewEvent {
  const { id, type, data, metadata } = event;
  const fault = [data, metadata].find((part) => part instanceof Unreadable);
  const refused = (why: string) => new FuelError('REFUSED', `${textOfRef(event)} can't be copied: ${why}`);
  if (fault !== undefined) throw refused(fault.reason);
  const { at } = membersOf(metadata);
  if (typeof at !== 'string' || parseDateTime(at) === undefined)
    throw refused('it does not say when it happened');
  return { id, type, data, metadata: metadata as EventMetadata };
}
