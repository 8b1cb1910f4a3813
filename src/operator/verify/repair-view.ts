import type { Clock } from '../../base/clock.ts';
import { world } from '../../base/world.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { changesIn, erasureOf, projectEvent } from '../../records/project-event.ts';
import { differenceFromEvents, foldRow } from './compare-row.ts';
import type { ViewDifference } from './verify-view.ts';

/** Tries again if the projector has applied an event in the meantime, which a replacement undoes. */
const MAX_TRIES = 3;

export interface RepairViewOptions {
  readonly store: EventStore;
  readonly view: TransactionsView;
  readonly clock: Clock;
  readonly author: Author;
}

/**
 * Stores in the view what the events of the differing transactions render to, and then records the repair. Returns those
 * that still differ.
 */
export async function repairView(
  differences: readonly ViewDifference[],
  { store, view, clock, author }: RepairViewOptions,
): Promise<readonly ViewDifference[]> {
  if (differences.length === 0) return [];
  const remaining: ViewDifference[] = [];
  for (const difference of differences) {
    if (!(await repairRow(difference.transactionId, { store, view }))) remaining.push(difference);
    await world.nextTurn();
  }
  const repaired = differences.length - remaining.length;
  const event = { type: 'AgreementRepaired', data: { what: 'view', repaired } } as const;
  if (repaired > 0) await recordOperations(store, [event], { author, clock });
  return remaining;
}

/** Stores the row that the transaction's events make. Returns true if it is right now. */
export async function repairRow(
  transactionId: number,
  { store, view }: Pick<RepairViewOptions, 'store' | 'view'>,
): Promise<boolean> {
  const stream = transactionStream(transactionId);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const isErased = await store.isErased(stream);
    const changes = isErased ? [erasureOf(transactionId)] : changesIn(await store.readStream(stream));
    await view.replace(transactionId, changes);
    const row = (await view.find([transactionId])).get(transactionId);
    const expected = foldRow((await store.readStream(stream)).map(projectEvent));
    if (differenceFromEvents(expected, row) === undefined) return true;
  }
  return false;
}
