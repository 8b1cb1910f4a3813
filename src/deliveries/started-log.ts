import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { parseDateTime } from '../domain/values/date-time.ts';
import { decodeStrict } from '../event-store/codec.ts';
import type { EventStore } from '../event-store/event-store.ts';

/** What the stream `operations` says of the delivery log. */
export interface StartedLog {
  /** Of the log that was begun last: the only one that may be used. */
  readonly id: string;
  /** When the first log of this event store was begun, milliseconds. */
  readonly firstStartedAtMs: number;
}

/** The delivery log that belongs to the event store; `undefined` where none was ever begun. */
export async function readStartedLog(store: EventStore): Promise<StartedLog | undefined> {
  let started: StartedLog | undefined;
  for (const event of await store.readStream(OPERATIONS_STREAM)) {
    if (event.type !== 'DeliveryLogStarted') continue;
    const decoded = decodeStrict(event);
    if (!decoded.ok) continue; // parked like any other event that can't be read: an older one still counts
    const data = decoded.data as { readonly log_id: string; readonly started_at: string };
    const startedAtMs = parseDateTime(data.started_at) ?? event.recordedAtMs;
    started = { id: data.log_id, firstStartedAtMs: started?.firstStartedAtMs ?? startedAtMs };
  }
  return started;
}
