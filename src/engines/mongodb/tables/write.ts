import {
  type AnyBulkWriteOperation,
  type ClientSession,
  type Collection,
  type Db,
  type Document,
  ObjectId,
} from 'mongodb';
import type { Key, TablePlan } from '../../../tables/plan.ts';
import type { Write } from '../../../tables/tables.ts';
import { NONE_DONE } from '../../tables/as-tables.ts';
import { ONE_BATCH } from '../driver/connection.ts';
import { duplicatesIn, isDuplicateKey } from '../driver/errors.ts';
import { toDocument, toFilter, toStored } from './documents.ts';

export type StoredDocument = Document & { readonly _id: Key };
type Operation = AnyBulkWriteOperation<StoredDocument>;
/** Has the session if the writes belong to a transaction. */
type InSession = { readonly session?: ClientSession };

/** The member of a document with the token of the list of guarded writes that has changed it last. */
const WRITTEN_BY = '_written_by';

export function storedIn(db: Db, { name }: TablePlan): Collection<StoredDocument> {
  return db.collection(name);
}

/**
 * Writes each part of the list that stays in one table with one bulk write, in the order of the list. Says for each
 * write whether it was done.
 */
export async function writeInTurn(
  db: Db,
  writes: readonly Write[],
  inSession: InSession = {},
): Promise<boolean[]> {
  const done: boolean[] = [];
  for (let from = 0; from < writes.length; ) {
    const { table } = writes[from] as Write;
    const end = writes.findIndex((write, n) => n > from && write.table !== table);
    const some = writes.slice(from, end === -1 ? writes.length : end);
    for (const isDone of await writeAtOnce(storedIn(db, table), some, inSession)) done.push(isDone);
    from += some.length;
  }
  return done;
}

/**
 * A bulk write says how many of its writes were done, but not which. So guarded writes leave a token in their
 * documents, and if some writes were not done, the documents are read to find it.
 */
async function writeAtOnce(
  stored: Collection<StoredDocument>,
  writes: readonly Write[],
  inSession: InSession,
): Promise<boolean[]> {
  const token = writes.length === 1 ? undefined : new ObjectId(); // the counts say everything about one write
  const bulk = (some: readonly Write[]) =>
    bulkWrite(
      stored,
      some.map((each) => operationOf(each, token)),
      inSession,
    );
  const first = await bulk(writes);
  const refused = new Set(first.duplicates);
  let { written } = first;
  // The row was inserted by another process after it was found missing. Now that it exists, its column decides.
  const again = first.duplicates.filter((place) => isBelow(writes[place]));
  if (again.length > 0) {
    const second = await bulk(again.map((place) => writes[place] as Write));
    for (const [n, place] of again.entries()) if (!second.duplicates.includes(n)) refused.delete(place);
    written += second.written;
  }
  const drops = writes.filter(({ kind }) => kind === 'drop').length;
  if (written === writes.length - drops - refused.size && first.deleted === drops)
    return writes.map((_, place) => !refused.has(place));
  const tokens = await tokensOf(stored, writes, inSession);
  return writes.map(({ kind, key, as }, place) => {
    if (refused.has(place)) return false;
    if (kind === 'drop') return !tokens.has(key);
    const isGuarded = kind === 'change' || as !== undefined;
    return !isGuarded || token?.equals(tokens.get(key)) === true;
  });
}

function isBelow(write: Write | undefined): boolean {
  return write?.kind === 'put' && write.below !== undefined;
}

/** Reads the tokens in the documents of these writes. Documents that don't exist are left out. */
async function tokensOf(
  stored: Collection<StoredDocument>,
  writes: readonly Write[],
  inSession: InSession,
): Promise<ReadonlyMap<Key, ObjectId | undefined>> {
  const these = { _id: { $in: writes.map(({ key }) => key) } };
  const options = { projection: { [WRITTEN_BY]: 1 }, hint: '_id_', batchSize: ONE_BATCH, ...inSession };
  const found = await stored.find(these, options).toArray();
  return new Map(found.map((document) => [document._id, document[WRITTEN_BY] as ObjectId | undefined]));
}

interface Outcome {
  readonly written: number;
  readonly deleted: number;
  /** The places of inserts and upserts that found an existing document. */
  readonly duplicates: readonly number[];
}

async function bulkWrite(
  stored: Collection<StoredDocument>,
  operations: readonly Operation[],
  inSession: InSession,
): Promise<Outcome> {
  const ordered = inSession.session !== undefined; // a transaction takes no operation after the first that failed
  try {
    return outcomeOf(await stored.bulkWrite(operations, { ordered, ...inSession }), []);
  } catch (error) {
    if (!ordered) return outcomeOf((error as { readonly result: Counts }).result, duplicatesIn(error));
    throw isDuplicateKey(error) ? NONE_DONE : error;
  }
}

type Counts = Record<'insertedCount' | 'matchedCount' | 'upsertedCount' | 'deletedCount', number>;

function outcomeOf(counts: Counts, duplicates: readonly number[]): Outcome {
  const { insertedCount, matchedCount, upsertedCount, deletedCount } = counts;
  return { written: insertedCount + matchedCount + upsertedCount, deleted: deletedCount, duplicates };
}

function operationOf(write: Write, token: ObjectId | undefined): Operation {
  const { table, key, as = {} } = write;
  const filter = { _id: key, ...toFilter(table, as) };
  if (write.kind === 'drop') return { deleteOne: { filter } };
  const mark = token && { [WRITTEN_BY]: token };
  const document = toDocument(table, write.row) as StoredDocument;
  if (write.kind === 'change') {
    const absent = Object.keys(write.row).filter((column) => write.row[column] === null);
    const $unset = absent.length === 0 ? {} : { $unset: Object.fromEntries(absent.map((each) => [each, 1])) };
    return { updateOne: { filter, update: { $set: { ...document, ...mark }, ...$unset } } };
  }
  if (write.missing) return { insertOne: { document } };
  if (write.as !== undefined) return { replaceOne: { filter, replacement: { ...document, ...mark } } };
  const { shardedBy } = table;
  const spread = shardedBy === undefined ? {} : { [shardedBy]: document[shardedBy] };
  const [column = '', limit = 0] = write.below ?? [];
  const below = write.below && { [column]: { $lt: toStored(table, column, limit) } };
  return { replaceOne: { filter: { _id: key, ...spread, ...below }, replacement: document, upsert: true } };
}
