import type { Clock } from '../../base/clock.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { notSkipped } from '../../event-store/skipped-events.ts';
import { projectEvent } from '../../pull/record/project-event.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';

/**
 * Applies what the view has parked again, but none that was skipped: all of it, or the one at position `only`. Records
 * `ParkedRetried` for each page of them.
 */
export async function retryParked(
  store: EventStore,
  view: Pick<TransactionsView, 'parked' | 'retry'>,
  options: { readonly only: number | undefined; readonly author: Author; readonly clock: Clock },
): Promise<{ readonly retried: number; readonly still_parked: number }> {
  const { only } = options;
  const counts = { retried: 0, still_parked: 0 };
  let after = only === undefined ? 0 : only - 1;
  for (;;) {
    const page = await view.parked({ after, ...(only !== undefined && { limit: 1 }) });
    const last = page.at(-1)?.position;
    if (last === undefined || (only !== undefined && last !== only)) return counts;
    const events: RecordedEvent[] = [];
    for (const { stream, revision } of await notSkipped(store, page)) {
      const [event] = await store.readStream(stream, { fromRevision: revision });
      if (event !== undefined) events.push(event); // otherwise its stream was erased: there is nothing to apply
    }
    for (const event of events) await view.retry([projectEvent(event)]);
    const positions = events.map(({ position }) => position);
    if (positions.length > 0) {
      const data = { projection: VIEW_NAME, positions };
      await recordOperations(store, [{ type: 'ParkedRetried', data }], options);
    }
    const remaining = new Set((await view.parked({ after })).map(({ position }) => position));
    counts.retried += positions.length;
    counts.still_parked += positions.filter((position) => remaining.has(position)).length;
    if (only !== undefined) return counts;
    after = last;
  }
}
