import { type EventStore, isErasure, type RecordedEvent } from '../../../event-store/event-store.ts';
import { readInParts } from '../../../event-store/read-in-parts.ts';
import { projectEvent, type ViewChange } from '../../project-event.ts';

/**
 * The changes of a part of the log, such that any order of the parts makes the same view. Which change may follow which
 * depends on the events before it in its stream, and those may be in a part that was not applied yet: so the whole stream
 * is applied in their place. What begins a stream needs nothing before it, and what erases it is above everything.
 */
export async function changesOfWholeStreams(
  store: Pick<EventStore, 'readStreams'>,
  events: readonly RecordedEvent[],
): Promise<ViewChange[]> {
  const later = new Set<string>();
  const changes: ViewChange[] = [];
  for (const event of events) {
    if (event.revision === 0 || isErasure(event)) changes.push(projectEvent(event));
    else later.add(event.stream);
  }
  for await (const [, history] of readInParts(store, [...later])) {
    for (const event of history) changes.push(projectEvent(event)); // none where the stream was erased since
  }
  return changes;
}
