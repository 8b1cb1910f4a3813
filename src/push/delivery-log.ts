import type { Clock } from '../base/clock.ts';
import { FuelError } from '../base/errors.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { formatDateTime, parseDateTime } from '../domain/values/date-time.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { newEvent } from '../event-store/new-event.ts';
import { operationOf } from '../event-store/operations.ts';
import type { RecordedEvent } from '../event-store/recorded-event.ts';
import type { DeliveryQueue } from './queue/delivery-queue.ts';

const AUTHOR = { actor: 'system', command: 'webhooks start' };

/**
 * Makes sure that the delivery log belongs to the event store, and records it there if no log is recorded yet. Throws
 * `STORE_MISMATCH` if another log is recorded: only that one knows what receivers have got, and continuing without it
 * would send them everything again.
 */
export async function claimDeliveryLog(
  store: EventStore,
  queue: Pick<DeliveryQueue, 'logId'>,
  clock: Clock,
): Promise<void> {
  const { id, startedAtMs } = await queue.logId();
  for (;;) {
    const events = await store.readStream(OPERATIONS_STREAM);
    const started = startedLogIn(events);
    if (started?.id === id) return;
    if (started !== undefined) {
      throw new FuelError(
        'STORE_MISMATCH',
        `the delivery log is ${id} and this event store's is ${started.id}: restore the backup of the delivery ` +
          'log that belongs to it, or, where it is lost, run "fuel verify deliveries --repair --resend-unknown"',
      );
    }
    const data = { log_id: id, started_at: formatDateTime(startedAtMs) };
    const event = newEvent({ type: 'DeliveryLogStarted', data }, AUTHOR, clock.now());
    const expected = events.at(-1)?.revision ?? 'none'; // if several processes start at once, one of them records it
    await store.append([{ stream: OPERATIONS_STREAM, expected, events: [event] }]);
  }
}

/** The delivery log as the stream `operations` records it. */
interface StartedLog {
  /** The log that was started last, which is the only one that may be used. */
  readonly id: string;
  /** When the first log of this event store was started, in milliseconds. */
  readonly firstStartedAtMs: number;
}

/** The delivery log that belongs to the event store; `undefined` if none was ever started. */
export async function readStartedLog(store: EventStore): Promise<StartedLog | undefined> {
  return startedLogIn(await store.readStream(OPERATIONS_STREAM));
}

function startedLogIn(events: readonly RecordedEvent[]): StartedLog | undefined {
  let started: StartedLog | undefined;
  for (const event of events) {
    const operation = operationOf(event);
    if (operation?.type !== 'DeliveryLogStarted') continue;
    const { data, recorded } = operation;
    const startedAtMs = parseDateTime(data.started_at) ?? recorded.recordedAtMs;
    started = { id: data.log_id, firstStartedAtMs: started?.firstStartedAtMs ?? startedAtMs };
  }
  return started;
}
