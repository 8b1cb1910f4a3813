import { errorKind, reasonOf } from '../../base/errors.ts';
import { isolateFailures } from '../../base/isolate.ts';
import type { ViewChange } from '../record/project-event.ts';
import type { ParkedTransactionEvent } from './checkpoint.ts';

/** Stores changes; with `isWhole` the batch is done with them, and its position moves. */
type Apply<R> = (
  changes: readonly ViewChange[],
  isWhole: boolean,
) => Promise<readonly ParkedTransactionEvent[] | R>;

/**
 * Applies a batch. A change that the view's store refuses is parked with the reason, and the others are applied; until
 * then the position does not move. Returns what was parked, or what `apply` returned instead.
 */
export async function applyOrPark<R = never>(
  changes: readonly ViewChange[],
  apply: Apply<R>,
): Promise<readonly ParkedTransactionEvent[] | R> {
  try {
    return await apply(changes, true);
  } catch (error) {
    if (errorKind(error) !== 'refused') throw error;
  }
  const parkedByApply: ParkedTransactionEvent[] = [];
  const refused = await isolateFailures(changes, async (some) => {
    const result = await apply(some, false);
    if (Array.isArray(result)) for (const event of result) parkedByApply.push(event);
  });
  const refusedChanges = refused.map(({ item, error }) => parkedChange(item, reasonOf(error)));
  const result = await apply(refusedChanges, true);
  return Array.isArray(result) ? [...parkedByApply, ...result] : result;
}

function parkedChange(change: ViewChange, reason: string): ViewChange {
  if ('parkReason' in change) return change;
  const { position, stream, type } = change;
  return { position, stream, type, revision: change.change.revision, parkReason: reason };
}
