import {
  type AnyBulkWriteOperation,
  type ClientSession,
  type Collection,
  type Db,
  type Document,
  ObjectId,
} from 'mongodb';
import { type AnyRow, isNullable, type Key, type TablePlan } from '../../../tables/plan.ts';
import type { Write } from '../../../tables/tables.ts';
import { ONE_BATCH } from '../driver/connection.ts';
import { duplicatesIn, isDuplicateKey } from '../driver/prepared-collections.ts';
import { fieldOf, toDocument, toStored, WRITTEN_BY } from './documents.ts';

export type StoredDocument = Document & { readonly _id: Key };
type Operation = AnyBulkWriteOperation<StoredDocument>;

/** Ends a transaction in which a guard does not hold. */
export const NONE = Symbol('none of the writes was done');

export function storedIn(db: Db, { name }: TablePlan): Collection<StoredDocument> {
  return db.collection(name);
}

/** Writes what follows one another in one table at once, and says for each write whether it was done. */
export async function writeInTurn(
  db: Db,
  writes: readonly Write[],
  session?: ClientSession,
): Promise<boolean[]> {
  const done: boolean[] = [];
  for (let from = 0; from < writes.length; ) {
    const { table } = writes[from] as Write;
    const end = writes.findIndex((write, n) => n > from && write.table !== table);
    const some = writes.slice(from, end === -1 ? writes.length : end);
    for (const isDone of await writeAtOnce(storedIn(db, table), some, session)) done.push(isDone);
    from += some.length;
  }
  return done;
}

async function writeAtOnce(
  stored: Collection<StoredDocument>,
  writes: readonly Write[],
  session: ClientSession | undefined,
): Promise<boolean[]> {
  const token = writes.length === 1 ? undefined : new ObjectId(); // of one write the counts say all
  const write = (some: readonly Write[]): Promise<Outcome> =>
    bulkWrite(
      stored,
      some.map((each) => operationOf(each, token)),
      session,
    );
  const first = await write(writes);
  const refused = new Set(first.duplicates);
  let { written } = first;
  // Another may have inserted the row since it was found missing. By now it is there, and its column decides.
  const again = first.duplicates.filter((place) => isBelow(writes[place]));
  if (again.length > 0) {
    const second = await write(again.map((place) => writes[place] as Write));
    for (const [n, place] of again.entries()) if (!second.duplicates.includes(n)) refused.delete(place);
    written += second.written;
  }
  const drops = writes.filter(({ kind }) => kind === 'drop').length;
  if (written === writes.length - drops - refused.size && first.deleted === drops)
    return writes.map((_, place) => !refused.has(place));
  const found = await writtenBy(stored, writes, session);
  return writes.map(({ kind, key, ...each }, place) => {
    if (refused.has(place)) return false;
    if (kind === 'drop') return !found.has(key);
    const isGuarded = kind === 'change' || each.as !== undefined;
    return !isGuarded || token?.equals(found.get(key)) === true;
  });
}

function isBelow(write: Write | undefined): boolean {
  return write?.kind === 'put' && write.below !== undefined;
}

/** By which list each of the rows was changed last; rows that are gone are left out. */
async function writtenBy(
  stored: Collection<StoredDocument>,
  writes: readonly Write[],
  session: ClientSession | undefined,
): Promise<ReadonlyMap<Key, ObjectId | undefined>> {
  const found = await stored
    .find(
      { _id: { $in: writes.map(({ key }) => key) } },
      { projection: { [WRITTEN_BY]: 1 }, hint: '_id_', ...inSession(session) },
    )
    .batchSize(ONE_BATCH)
    .toArray();
  return new Map(found.map((document) => [document._id, document[WRITTEN_BY] as ObjectId | undefined]));
}

interface Outcome {
  readonly written: number;
  readonly deleted: number;
  /** The places of those that found a row where they were to insert one. */
  readonly duplicates: readonly number[];
}

async function bulkWrite(
  stored: Collection<StoredDocument>,
  operations: readonly Operation[],
  session: ClientSession | undefined,
): Promise<Outcome> {
  try {
    // In a transaction the first failure is the last operation that is taken.
    const ordered = session !== undefined;
    return outcomeOf(await stored.bulkWrite(operations, { ordered, ...inSession(session) }), []);
  } catch (error) {
    if (session === undefined)
      return outcomeOf((error as { readonly result: Counts }).result, duplicatesIn(error));
    throw isDuplicateKey(error) ? NONE : error;
  }
}

type Counts = Record<'insertedCount' | 'matchedCount' | 'upsertedCount' | 'deletedCount', number>;

function outcomeOf(counts: Counts, duplicates: readonly number[]): Outcome {
  const { insertedCount, matchedCount, upsertedCount, deletedCount } = counts;
  return { written: insertedCount + matchedCount + upsertedCount, deleted: deletedCount, duplicates };
}

function operationOf(write: Write, token: ObjectId | undefined): Operation {
  const { table, key, as } = write;
  const filter = { _id: key, ...asRead(table, as) };
  if (write.kind === 'drop') return { deleteOne: { filter } };
  const mark = token && { [WRITTEN_BY]: token };
  if (write.kind === 'change') return { updateOne: { filter, update: updateOf(table, write.row, mark) } };
  const document = toDocument(table, write.row) as StoredDocument;
  if (write.missing) return { insertOne: { document } };
  if (as !== undefined) return { replaceOne: { filter, replacement: { ...document, ...mark } } };
  const { shardedBy } = table;
  const spread = shardedBy === undefined ? {} : { [shardedBy]: document[shardedBy] };
  const below = write.below && belowOf(table, write.below);
  return { replaceOne: { filter: { _id: key, ...spread, ...below }, replacement: document, upsert: true } };
}

function asRead(table: TablePlan, as: AnyRow = {}): Document {
  return Object.fromEntries(
    Object.entries(as).map(([column, value]) => [fieldOf(table, column), toStored(table, column, value)]),
  );
}

function belowOf(table: TablePlan, [column, limit]: readonly [string, number]): Document {
  return { [column]: { $lt: toStored(table, column, limit) } };
}

function updateOf(table: TablePlan, columns: AnyRow, mark: Document | undefined): Document {
  const absent = Object.keys(columns).filter(
    (column) => columns[column] === null && isNullable(table, column),
  );
  const $set = { ...toDocument(table, columns), ...mark };
  if (absent.length === 0) return { $set };
  return { $set, $unset: Object.fromEntries(absent.map((column) => [column, 1])) };
}

function inSession(session: ClientSession | undefined): { readonly session?: ClientSession } {
  return session === undefined ? {} : { session };
}
