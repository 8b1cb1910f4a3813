import type { ClientSession, Collection, Document } from 'mongodb';
import { MAX_ATTEMPTS_KEPT } from '../delivery-queue.ts';
import type { DeliveryDocument } from './collections.ts';
import { KEEPS_RECORD, NO_MORE_DUE } from './withdrawals.ts';

/** A success as its delivery takes it. */
export interface Success {
  readonly id: string;
  readonly cycle: number;
  readonly endedAtMs: number;
  readonly attempt: DeliveryDocument['attempts'][number];
}

/**
 * Records successes of one cycle by a single update, each delivery picking its own out of all: two thirds of the
 * server's work of as many updates. Of ids none is given twice. Says how many counted.
 */
export async function recordSuccesses(
  deliveries: Collection<DeliveryDocument>,
  successes: readonly Success[],
  within: { readonly session?: ClientSession },
): Promise<number> {
  const [first] = successes;
  if (first === undefined) return 0;
  const ids = successes.map(({ id }) => id);
  const own = successes.map(({ endedAtMs, attempt }) => ({ ended_at: endedAtMs, attempts: [attempt] }));
  const change: Document[] = [
    { $set: { own: { $arrayElemAt: [{ $literal: own }, { $indexOfArray: [{ $literal: ids }, '$_id'] }] } } },
    {
      $set: {
        state: 'delivered',
        reason: null,
        ended_at: '$own.ended_at',
        attempts_in_cycle: { $add: ['$attempts_in_cycle', 1] },
        attempts: { $slice: [{ $concatArrays: ['$attempts', '$own.attempts'] }, -MAX_ATTEMPTS_KEPT] },
      },
    },
    { $unset: ['own', ...Object.keys(NO_MORE_DUE)] },
  ];
  const { matchedCount } = await deliveries.updateMany(
    { _id: { $in: ids }, state: { $ne: 'delivered' }, cycle: first.cycle, ...KEEPS_RECORD },
    change,
    { hint: '_id_', ...within },
  );
  return matchedCount;
}
