import type { AnyBulkWriteOperation, MongoBulkWriteError } from 'mongodb';
import { transactionStream } from '../../../domain/transaction-events.ts';
import type { ViewChange } from '../../../pull/record/project-event.ts';
import type { ParkedTransactionEvent } from '../../../pull/view/checkpoint.ts';
import {
  erasure,
  foldHistory,
  freshState,
  groupChanges,
  type Histories,
  type KnownChange,
} from '../../stored/fold-changes.ts';
import { duplicatesIn, retryUpsert } from '../driver/prepared-collections.ts';
import { documentOf, stateOf, type TransactionDocument } from './documents.ts';
import type { Generation } from './generations.ts';

/** Each round is lost to another writer's change of a row of the batch. */
const MAX_ROUNDS = 100;

/** What the changes of one transaction make of `before`. */
interface Outcome {
  readonly before: TransactionDocument | undefined;
  /** `undefined` where nothing changes. */
  readonly document: TransactionDocument | undefined;
  readonly parked: readonly ParkedTransactionEvent[];
}

/**
 * Applies changes to the rows of a generation: one write for each transaction, guarded by the revision that was read;
 * rows that another writer has changed meanwhile are read and decided again. Safe to repeat and to run concurrently.
 * Returns what was parked. Parked events are written before the rows: after a crash between the two they are parked
 * again, while in the other order they would be stale by then, and lost.
 */
export async function applyChanges(
  generation: Generation,
  changes: readonly ViewChange[],
  atMs: number,
): Promise<ParkedTransactionEvent[]> {
  const { histories, unreadable } = groupChanges(changes, atMs);
  await park(generation, unreadable);
  const parked = new Map(unreadable.map((event) => [event.position, event]));
  const open = await insertFresh(generation, histories);
  for (let isDone = open.size === 0, round = 0; !isDone; round++) {
    if (round === MAX_ROUNDS) throw new Error(`rows of the view change without end: ${[...open.keys()]}`);
    const outcomes = await decide(generation, open, atMs);
    const illegal = outcomes.flatMap((outcome) => outcome.parked);
    await park(generation, illegal);
    for (const event of illegal) parked.set(event.position, event);
    isDone = await write(generation, outcomes);
  }
  return [...parked.values()].sort((a, b) => a.position - b.position);
}

/** Leaves a tombstone that no event replaces, and none of the transaction's parked events. */
export async function eraseRow(
  generation: Generation,
  { transactionId, atMs }: { readonly transactionId: number; readonly atMs: number },
): Promise<void> {
  await applyChanges(generation, [erasure(transactionId)], atMs);
  await generation.parked.deleteMany({ stream: transactionStream(transactionId) });
}

/** Replaces the row, whatever it is, and the transaction's parked events with what the changes make from nothing. */
export async function replaceRow(
  { rows, parked }: Generation,
  {
    transactionId: _id,
    changes,
    atMs,
  }: {
    readonly transactionId: number;
    readonly changes: readonly ViewChange[];
    readonly atMs: number;
  },
): Promise<void> {
  const { histories, unreadable } = groupChanges(changes, atMs);
  const { state, parked: illegal } = foldHistory(undefined, histories.get(_id) ?? [], atMs);
  const kept = [...unreadable, ...illegal];
  await park({ parked }, kept);
  const isOther = { $nin: kept.map(({ position }) => position) };
  await parked.deleteMany({ stream: transactionStream(_id), _id: isOther });
  // A row of another account may be on another shard.
  await rows.deleteMany({ _id, ...(state && { account_id: { $ne: state.accountId } }) });
  if (state === undefined) return;
  const own = { _id, account_id: state.accountId };
  await retryUpsert(() => rows.replaceOne(own, documentOf(_id, state), { upsert: true }));
}

function outcomeOf(
  id: number,
  before: TransactionDocument | undefined,
  { history, atMs }: { readonly history: readonly KnownChange[]; readonly atMs: number },
): Outcome {
  const { state, parked } = foldHistory(before && stateOf(before), history, atMs);
  return { before, document: state && documentOf(id, state, before), parked };
}

async function park(
  { parked }: Pick<Generation, 'parked'>,
  events: readonly ParkedTransactionEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const documents = events.map(({ position, parkedAtMs, ...event }) => ({
    _id: position,
    ...event,
    parked_at: new Date(parkedAtMs),
  }));
  await parked.bulkWrite(
    documents.map((replacement) => ({
      replaceOne: { filter: { _id: replacement._id }, replacement, upsert: true },
    })),
    { ordered: false },
  );
}

/** A filter for the row as it was read; in a sharded cluster the account routes it to one shard. */
function asRead({ _id, account_id, revision }: TransactionDocument) {
  return { _id, account_id, revision };
}

/**
 * Inserts what begins with a record without reading first: in an empty view that is everything. Returns the rest, where
 * something may have to be parked; or all where a row was there.
 */
async function insertFresh(generation: Generation, histories: Histories): Promise<Histories> {
  const left: Histories = new Map();
  const inserts: { insertOne: { document: TransactionDocument } }[] = [];
  for (const [id, history] of histories) {
    const state = freshState(history);
    if (state === undefined) left.set(id, history);
    else inserts.push({ insertOne: { document: documentOf(id, state) } });
  }
  if (inserts.length === 0) return left;
  return (await writeUnordered(generation, inserts)).duplicates === 0 ? left : histories;
}

async function decide({ rows }: Generation, open: Histories, atMs: number): Promise<Outcome[]> {
  const found = await rows.find({ _id: { $in: [...open.keys()] } }).toArray();
  const present = new Map(found.map((document) => [document._id, document]));
  return [...open].map(([id, history]) => outcomeOf(id, present.get(id), { history, atMs }));
}

/** False where another writer has changed a row meanwhile: what was written is stale when it is decided again. */
async function write(generation: Generation, outcomes: readonly Outcome[]): Promise<boolean> {
  const inserts = outcomes.flatMap(({ before, document }) =>
    document === undefined || before !== undefined ? [] : [{ insertOne: { document } }],
  );
  const replacements = outcomes.flatMap(({ before, document }) =>
    document === undefined || before === undefined
      ? []
      : [{ replaceOne: { filter: asRead(before), replacement: document } }],
  );
  if (inserts.length + replacements.length === 0) return true;
  const { matched, duplicates } = await writeUnordered(generation, [...inserts, ...replacements]);
  return duplicates === 0 && matched === replacements.length;
}

/** Writes all that can be written, and counts the inserts that found an existing row. */
export async function writeUnordered(
  { rows }: Generation,
  operations: readonly AnyBulkWriteOperation<TransactionDocument>[],
): Promise<{ readonly matched: number; readonly duplicates: number }> {
  try {
    const { matchedCount } = await rows.bulkWrite(operations, { ordered: false });
    return { matched: matchedCount, duplicates: 0 };
  } catch (error) {
    const duplicates = duplicatesIn(error).length;
    return { matched: (error as MongoBulkWriteError).matchedCount, duplicates };
  }
}
