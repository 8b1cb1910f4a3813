import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type Author, newEvent } from '../../event-store/new-event.ts';
import { projectEvent } from '../project-event.ts';
import { VIEW_NAME } from './projector.ts';
import type { TransactionsView } from './transactions-view.ts';

/** Applies parked events again: all of them, or the one at position `only`. Records `ParkedRetried`. */
export async function retryParked(
  store: EventStore,
  view: TransactionsView,
  options: { readonly only: number | undefined; readonly author: Author; readonly atMs: number },
): Promise<{ readonly retried: number; readonly still_parked: number }> {
  const wanted = (await view.parked()).filter(
    (event) => options.only === undefined || event.position === options.only,
  );
  const positions: number[] = [];
  for (const { stream, revision, position } of wanted) {
    const [event] = await store.readStream(stream, { fromRevision: revision });
    if (event === undefined) continue; // its stream was erased: there is nothing to apply
    await view.retry([projectEvent(event)]);
    positions.push(position);
  }
  if (positions.length > 0) {
    const data = { projection: VIEW_NAME, positions };
    const event = newEvent({ type: 'ParkedRetried', data }, options.author, options.atMs);
    await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: [event] }]);
  }
  const remaining = new Set((await view.parked()).map((event) => event.position));
  return {
    retried: positions.length,
    still_parked: positions.filter((position) => remaining.has(position)).length,
  };
}
