import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { decodeStrict } from '../event-store/codec.ts';
import type { RecordedEvent } from '../event-store/event-store.ts';

/** What a `StoreCopied` says: how much was copied, `null` for what was no part of that copy. */
export interface CopyMark {
  /** Of the event itself. */
  readonly id: string;
  readonly position: number;
  readonly events: number | null;
  readonly deliveries: number | null;
}

/** The copies that are on record in the stream `operations`, oldest first. */
export function copyMarks(operations: readonly RecordedEvent[]): CopyMark[] {
  return operations.flatMap((event) => {
    if (event.stream !== OPERATIONS_STREAM || event.type !== 'StoreCopied') return [];
    const decoded = decodeStrict(event);
    if (!decoded.ok) return [];
    const { events, deliveries } = decoded.data as Pick<CopyMark, 'events' | 'deliveries'>;
    return [{ id: event.id, position: event.position, events, deliveries }];
  });
}
