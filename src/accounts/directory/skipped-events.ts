import { OPERATIONS_STREAM, type OperationsEvent } from '../../domain/operations-events.ts';
import { decodeStrict } from '../../event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../../event-store/event-store.ts';

/** The places of events that the operator has skipped: they are judged as if they were not there. */
export type SkippedEvents = ReadonlySet<string>;

export const NONE_SKIPPED: SkippedEvents = new Set();

type Place = Pick<RecordedEvent, 'stream' | 'revision'>;

export function isSkipped(skipped: SkippedEvents, place: Place): boolean {
  return skipped.has(keyOf(place));
}

export async function readSkipped(store: Pick<EventStore, 'readStream'>): Promise<SkippedEvents> {
  const places = (await store.readStream(OPERATIONS_STREAM)).map(skippedBy);
  return new Set(places.filter((place) => place !== undefined).map(keyOf));
}

export function withSkipped(skipped: SkippedEvents, place: Place): SkippedEvents {
  return new Set([...skipped, keyOf(place)]);
}

/** The place that an event of the stream `operations` skips; `undefined` where it is about something else. */
export function skippedBy(event: RecordedEvent): Place | undefined {
  const decoded = decodeStrict(event);
  if (!decoded.ok || event.stream !== OPERATIONS_STREAM) return undefined;
  const { type, data } = decoded as OperationsEvent;
  return type === 'ParkedSkipped' ? { stream: data.stream, revision: data.revision } : undefined;
}

function keyOf({ stream, revision }: Place): string {
  return `${stream}@${revision}`;
}
