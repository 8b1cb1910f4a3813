import type { Clock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { erasureOf } from '../../records/project-event.ts';
import { namedLeaves } from '../../seals/named-leaves.ts';

export interface ErasureOptions {
  readonly store: EventStore;
  readonly queue: Pick<DeliveryQueue, 'change'>;
  readonly view: Pick<TransactionsView, 'replace'>;
  readonly clock: Clock;
  readonly author: Author;
  readonly reason: string;
}

/**
 * Erases a transaction: records `TransactionErased`, then removes the events, the deliveries and the row of the view. This order
 * lets it be repeated after a crash. `removeErasedBytes` must follow. Returns the position of the last event; 0 if it was erased
 * before. Rejects with `REFUSED` if the transaction was never recorded.
 */
export async function eraseTransaction(id: number, options: ErasureOptions): Promise<Position> {
  const { store, queue, view, clock } = options;
  const stream = transactionStream(id);
  const events = await store.readStream(stream);
  if (!(await store.isErased(stream))) {
    if (events.length === 0) {
      throw new FuelError('REFUSED', `transaction ${id} was never recorded, so there is nothing to erase`);
    }
    for (let all = events, named = 0; all.length > named; all = await store.readStream(stream)) {
      await record(id, all.slice(named), options);
      named = all.length;
    }
    await store.erase(stream);
  }
  await queue.change({ kind: 'erase', transactionId: id }, clock.now());
  await view.replace(id, [erasureOf(id)]);
  return events.at(-1)?.position ?? 0;
}

async function record(
  id: number,
  events: readonly RecordedEvent[],
  { store, clock, author, reason }: ErasureOptions,
): Promise<void> {
  const accountId = (events[0]?.data as { account_id?: unknown } | undefined)?.account_id;
  const data = {
    transaction_id: id,
    account_id: typeof accountId === 'number' ? accountId : null,
    reason,
    leaves: await namedLeaves(store, events),
  };
  await recordOperations(store, [{ type: 'TransactionErased', data }], { author, clock });
}
