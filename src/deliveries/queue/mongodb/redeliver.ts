import type { DeliveryQueue } from '../delivery-queue.ts';
import type { DeliveryCollections } from './collections.ts';
import { endWithdrawn, OPEN } from './withdrawals.ts';

/** Each time somebody else changed the delivery in between. */
const MAX_TRIES = 20;

/** Begins a new cycle. It is due before withdrawals are looked for again: a withdrawal ends it in either order. */
export async function redeliver(
  collections: DeliveryCollections,
  id: string,
  { force, dueAtMs }: { readonly force: boolean; readonly dueAtMs: number },
): ReturnType<DeliveryQueue['redeliver']> {
  const { deliveries } = collections;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const projection = { transaction_id: 1, state: 1, cycle: 1 };
    const found = await deliveries.findOne({ _id: id }, { projection });
    if (found === null) return 'not known';
    const { transaction_id, state, cycle } = found;
    if ((await endWithdrawn(collections, [transaction_id])).size > 0) return 'withdrawn';
    if (OPEN.includes(state)) return 'pending';
    if (state === 'delivered' && !force) return 'delivered';
    const anew = {
      state: 'pending',
      reason: null,
      cycle: cycle + 1,
      attempts_in_cycle: 0,
      due_at: dueAtMs,
    } as const;
    const { matchedCount } = await deliveries.updateOne(
      { _id: id, state, cycle },
      { $set: anew, $unset: { ended_at: '', lease: '' } },
    );
    if (matchedCount === 0) continue;
    return (await endWithdrawn(collections, [transaction_id])).size > 0 ? 'withdrawn' : 'due';
  }
  throw new Error(`delivery ${id} changed faster than it could be made due`);
}
