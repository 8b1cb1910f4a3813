import { type AnyBulkWriteOperation, MongoBulkWriteError, MongoServerError } from 'mongodb';
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
} from '../../../pull/view/fold-changes.ts';
import { DUPLICATE_KEY } from '../driver/prepared-collections.ts';
import { documentOf, stateOf, type TransactionDocument } from './documents.ts';
import type { Generation } from './generations.ts';

/** Each round is lost to another writer's change of the row: at most as many as its stream has events. */
const MAX_ROUNDS = 100;
const UNKNOWN_ERROR = 8;

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
  let open = await insertFresh(generation, histories, atMs);
  for (let round = 0; open.size > 0; round++) {
    if (round === MAX_ROUNDS) throw new Error(`rows of the view change without end: ${[...open.keys()]}`);
    const outcomes = await decide(generation, open, atMs);
    const illegal = outcomes.flatMap((outcome) => outcome.parked);
    await park(generation, illegal);
    for (const event of illegal) parked.set(event.position, event);
    const lost = await write(generation, outcomes);
    open = new Map([...open].filter(([id]) => lost.has(id)));
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
  generation: Generation,
  {
    transactionId,
    changes,
    atMs,
  }: { readonly transactionId: number; readonly changes: readonly ViewChange[]; readonly atMs: number },
): Promise<void> {
  const { histories, unreadable } = groupChanges(changes, atMs);
  const outcome = outcomeOf(transactionId, undefined, { history: histories.get(transactionId) ?? [], atMs });
  const parked = [...unreadable, ...outcome.parked];
  const kept = parked.map(({ position }) => position);
  await park(generation, parked);
  await generation.parked.deleteMany({ stream: transactionStream(transactionId), _id: { $nin: kept } });
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (await replaceOnce(generation, transactionId, outcome.document)) return;
  }
  throw new Error(`the row of transaction ${transactionId} changes without end`);
}

/** One step of it; true when the row is as wanted. A row of another account is deleted first. */
async function replaceOnce(
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

function outcomeOf(
  id: number,
  before: TransactionDocument | undefined,
  { history, atMs }: { readonly history: readonly KnownChange[]; readonly atMs: number },
): Outcome {
  const { state, parked } = foldHistory(before && stateOf(before), history, atMs);
  return { before, document: state && documentOf(id, state, before), parked };
}

async function park({ parked }: Generation, events: readonly ParkedTransactionEvent[]): Promise<void> {
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
 * a row exists or something may have to be parked.
 */
async function insertFresh(generation: Generation, histories: Histories, atMs: number): Promise<Histories> {
  const left: Histories = new Map();
  const fresh: { history: KnownChange[]; document: TransactionDocument }[] = [];
  for (const [id, history] of histories) {
    const state = freshState(history, foldHistory(undefined, history, atMs));
    if (state === undefined) left.set(id, history);
    else fresh.push({ history, document: documentOf(id, state) });
  }
  if (fresh.length === 0) return left;
  const inserts = fresh.map(({ document }) => ({ insertOne: { document } }));
  const { duplicates } = await writeUnordered(generation, inserts);
  for (const index of duplicates) {
    const taken = fresh[index];
    if (taken !== undefined) left.set(taken.document._id, taken.history);
  }
  return left;
}

async function decide({ rows }: Generation, open: Histories, atMs: number): Promise<Outcome[]> {
  const found = await rows.find({ _id: { $in: [...open.keys()] } }).toArray();
  const present = new Map(found.map((document) => [document._id, document]));
  return [...open].map(([id, history]) => outcomeOf(id, present.get(id), { history, atMs }));
}

/** Returns the transactions whose rows another writer has changed meanwhile. */
async function write(generation: Generation, outcomes: readonly Outcome[]): Promise<Set<number>> {
  const wanted = outcomes.flatMap(({ before, document }) =>
    document === undefined ? [] : { before, document },
  );
  if (wanted.length === 0) return new Set();
  const operations = wanted.map(
    ({ before, document }): AnyBulkWriteOperation<TransactionDocument> =>
      before === undefined
        ? { insertOne: { document } }
        : { replaceOne: { filter: asRead(before), replacement: document } },
  );
  const { matched, duplicates } = await writeUnordered(generation, operations);
  const lost = new Set(duplicates.flatMap((index) => wanted[index]?.document._id ?? []));
  const replaced = wanted.filter(({ before }) => before !== undefined).map(({ document }) => document);
  if (matched === replaced.length) return lost;
  // MongoDB counts the rows that matched and does not name them. A row at the wanted revision has the same events,
  // whoever wrote it.
  const ids = replaced.map(({ _id }) => _id);
  const now = await generation.rows.find({ _id: { $in: ids } }, { projection: { revision: 1 } }).toArray();
  const revisions = new Map(now.map(({ _id, revision }) => [_id, revision]));
  for (const { _id, revision } of replaced) if (revisions.get(_id) !== revision) lost.add(_id);
  return lost;
}

/**
 * Writes all that can be written, and returns which operations found an existing row. Throws the server's own error for
 * any other failure, so that a temporary one can be told from a permanent one.
 */
export async function writeUnordered(
  { rows }: Generation,
  operations: readonly AnyBulkWriteOperation<TransactionDocument>[],
): Promise<{ matched: number; duplicates: number[] }> {
  try {
    const { matchedCount } = await rows.bulkWrite(operations, { ordered: false });
    return { matched: matchedCount, duplicates: [] };
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError)) throw error;
    const failures = [error.writeErrors].flat();
    const other = failures.find(({ code }) => code !== DUPLICATE_KEY) ?? error.result.getWriteConcernError();
    if (other !== undefined) {
      const { errmsg: message = error.message, code = UNKNOWN_ERROR } = other;
      throw new MongoServerError({ message, code });
    }
    if (failures.length === 0) throw error;
    return { matched: error.matchedCount, duplicates: failures.map(({ index }) => index) };
  }
}
