import { idOfChange, stateAfter, type TransactionChange } from '../../../projections/transactions.ts';
import { transactionStream } from '../../domain/transaction-events.ts';
import { erasureOf, type ViewChange } from '../../records/project-event.ts';
import { drop, put } from '../../tables/tables.ts';
import type { ParkedTransactionEvent } from './checkpoint.ts';
import type { Generation } from './generations.ts';
import { storedRow } from './stores.ts';

const PARKED_AT_ONCE = 1_000;

/**
 * Stores the rows that changes result in. A change holds the whole row, and counts only if the stored row has no later
 * revision, so this is safe to repeat, and to run concurrently and in any order. Returns the events that were parked.
 */
export async function applyChanges(
  generation: Generation,
  changes: readonly ViewChange[],
  atMs: number,
): Promise<ParkedTransactionEvent[]> {
  const parked = parkedAmong(changes, atMs);
  await park(generation, parked);
  const { tables, rows, references } = generation;
  const last = lastOfEach(changes);
  const erased = last.filter(({ kind }) => kind === 'erase').map(idOfChange);
  for (const id of erased) await replaceRow(generation, { id, changes: [erasureOf(id)], atMs }); // the row keeps its account
  const writes = last
    .filter(({ kind }) => kind !== 'erase')
    .map((change) => {
      const { revision } = change;
      const row = storedRow(references, idOfChange(change), stateAfter(change));
      return put(rows, row, revision === 0 ? 'missing' : { below: { revision } });
    });
  await tables.write(writes);
  return parked;
}

/** Replaces the row and the parked events of a transaction, whatever they are, with the result of these changes alone. */
export async function replaceRow(
  generation: Generation,
  {
    id,
    changes,
    atMs,
  }: { readonly id: number; readonly changes: readonly ViewChange[]; readonly atMs: number },
): Promise<void> {
  const { tables, rows, references } = generation;
  const kept = parkedAmong(changes, atMs);
  await park(generation, kept);
  await unparkStream(generation, id, new Set(kept.map(({ position }) => position)));
  const [before] = await tables.get(rows, [id]);
  const change = lastOfEach(changes).find((each) => idOfChange(each) === id);
  const after = change && storedRow(references, id, stateAfter(change), before?.account_id);
  // In a cluster the row of another account may be elsewhere.
  if (before !== undefined && before.account_id !== after?.account_id) await tables.write([drop(rows, id)]);
  if (after !== undefined) await tables.write([put(rows, after)]);
}

async function unparkStream(generation: Generation, id: number, kept: ReadonlySet<number>): Promise<void> {
  const { tables, parked } = generation;
  const ofStream = { index: 'by_stream', equals: { stream: transactionStream(id) } } as const;
  const found = await tables.find(parked, { ...ofStream, columns: ['position'], limit: PARKED_AT_ONCE });
  const gone = found.filter(({ position }) => !kept.has(position));
  await tables.write(gone.map(({ position }) => drop(parked, position)));
}

async function park(
  { tables, parked }: Generation,
  events: readonly ParkedTransactionEvent[],
): Promise<void> {
  await tables.write(
    events.map(({ parkedAtMs: parked_at, ...event }) => put(parked, { ...event, parked_at })),
  );
}

/** Returns the change with the highest revision of each transaction. */
function lastOfEach(changes: readonly ViewChange[]): TransactionChange[] {
  const last = new Map<number, TransactionChange>();
  for (const each of changes) {
    if ('parkReason' in each) continue;
    const { change } = each;
    const other = last.get(idOfChange(change));
    if (other === undefined || other.revision < change.revision) last.set(idOfChange(change), change);
  }
  return [...last.values()];
}

/** Returns the events to park, each once, in the order of their positions. */
function parkedAmong(changes: readonly ViewChange[], parkedAtMs: number): ParkedTransactionEvent[] {
  const parked = new Map<number, ParkedTransactionEvent>();
  for (const each of changes) {
    if (!('parkReason' in each)) continue;
    const { parkReason: reason, ...event } = each;
    parked.set(event.position, { ...event, reason, parkedAtMs });
  }
  return [...parked.values()].sort((a, b) => a.position - b.position);
}
