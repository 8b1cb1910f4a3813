import type { Clock } from '../base/clock.ts';
import {
  isOperationsEventType,
  OPERATIONS_STREAM,
  type OperationsEvent,
} from '../domain/operations-events.ts';
import { decodeStrict } from './codec.ts';
import type { EventStore } from './event-store.ts';
import { type Author, newEvent } from './new-event.ts';
import type { RecordedEvent } from './recorded-event.ts';

export type Operation = OperationsEvent & { readonly recorded: RecordedEvent };

/** Reads the stream `operations`, in order. Events that can't be read are left out. */
export async function readOperations(store: Pick<EventStore, 'readStream'>): Promise<Operation[]> {
  return (await store.readStream(OPERATIONS_STREAM)).flatMap((event) => operationOf(event) ?? []);
}

/**
 * Decodes an event of the stream `operations`; `undefined` for an event of another stream or one that can't be read.
 */
export function operationOf(recorded: RecordedEvent): Operation | undefined {
  return recorded.stream === OPERATIONS_STREAM ? readOperation(recorded) : undefined;
}

/** Decodes an operations event of any stream; `undefined` if it can't be read. */
export function readOperation(recorded: RecordedEvent): Operation | undefined {
  const decoded = decodeStrict(recorded);
  if (!decoded.ok || !isOperationsEventType(decoded.type)) return undefined;
  return { type: decoded.type, data: decoded.data, recorded } as Operation;
}

/** Appends events to the stream `operations`, whatever others have recorded there meanwhile. */
export async function recordOperations(
  store: Pick<EventStore, 'append'>,
  events: readonly OperationsEvent[],
  { author, clock }: { readonly author: Author; readonly clock: Clock },
): Promise<void> {
  const recorded = events.map((event) => newEvent(event, author, clock.now()));
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: recorded }]);
}
