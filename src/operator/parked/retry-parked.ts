import type { Clock } from '../../base/clock.ts';
import { transactionIdOf } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { notSkipped } from '../../event-store/skipped-events.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { repairRow } from '../verify/repair-view.ts';

/**
 * Renders the rows of the transactions that have parked events again: of all that were not skipped, or of the one at position
 * `only`. What still can't be applied stays parked. Records `ParkedRetried` for each page of events.
 */
export async function retryParked(
  store: EventStore,
  view: TransactionsView,
  options: { readonly only: number | undefined; readonly author: Author; readonly clock: Clock },
): Promise<{ readonly retried: number; readonly still_parked: number }> {
  const { only } = options;
  const counts = { retried: 0, still_parked: 0 };
  let after = only === undefined ? 0 : only - 1;
  for (;;) {
    const page = await view.parked({ after, ...(only !== undefined && { limit: 1 }) });
    const last = page.at(-1)?.position;
    if (last === undefined || (only !== undefined && last !== only)) return counts;
    const positions: Position[] = [];
    for (const { stream, position } of await notSkipped(store, page)) {
      if ((await store.readStream(stream)).length === 0) continue; // it was erased, so there is nothing to apply
      const id = transactionIdOf(stream);
      if (id !== undefined) await repairRow(id, { store, view });
      positions.push(position);
    }
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
