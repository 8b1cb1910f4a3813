import { transactionStream } from '../../../domain/transaction-events.ts';
import type { ViewChange } from '../../project-event.ts';
import { asRead, byTransaction, fold, illegalOf, park, unreadableOf, writeUnordered } from './changes.ts';
import type { TransactionDocument } from './documents.ts';
import type { Generation } from './generations.ts';

/** A race is lost to a change that another writer made meanwhile. */
const MAX_ROUNDS = 100;

export interface Replacement {
  readonly transactionId: number;
  readonly changes: readonly ViewChange[];
  readonly atMs: number;
}

/** Puts what the changes make of nothing in the place of the row, whatever it is, and of what was parked. */
export async function replaceRow(generation: Generation, replacement: Replacement): Promise<void> {
  const { transactionId, changes, atMs } = replacement;
  const history = byTransaction(changes).get(transactionId) ?? [];
  const outcome = fold(undefined, history);
  const parked = [...unreadableOf(changes, atMs), ...illegalOf(outcome, atMs)];
  const kept = parked.map(({ position }) => position);
  await park(generation, parked);
  await generation.parked.deleteMany({ stream: transactionStream(transactionId), _id: { $nin: kept } });
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (await putInPlace(generation, transactionId, outcome.document)) return;
  }
  throw new Error(`the row of transaction ${transactionId} changes without end`);
}

/** Takes one step towards it; true when it stands there. A row of another account makes room first. */
async function putInPlace(
  generation: Generation,
  transactionId: number,
  document: TransactionDocument | undefined,
): Promise<boolean> {
  const { rows } = generation;
  const present = await rows.findOne({ _id: transactionId });
  if (present === null) {
    if (document === undefined) return true;
    const { duplicates } = await writeUnordered(generation, [{ insertOne: { document } }]);
    return duplicates.length === 0;
  }
  if (document?.account_id !== present.account_id) {
    await rows.deleteOne(asRead(present));
    return false;
  }
  return (await rows.replaceOne(asRead(present), document)).matchedCount === 1;
}
