import type { Collection, Db, IndexDescription } from 'mongodb';
import { RENDERING_VERSION } from '../../../../projections/transactions.ts';
import { retryUpsert } from '../../../mongodb/prepared-collections.ts';
import type { Checkpoint } from '../transactions-view.ts';
import type { ParkedDocument, TransactionDocument } from './documents.ts';

const CHECKPOINTS = 'view_checkpoint';
const CHECKPOINT_ID = 'transactions';
/** Numbers that are skipped because their collection has rows: as many as collections were left over. */
const MAX_SKIPPED = 1_000;

export interface CheckpointDocument {
  readonly _id: string;
  /** The highest generation that was ever used. */
  readonly generations: number;
  /** What follows is absent until the first generation is in use. */
  readonly generation?: number;
  readonly rendering?: number;
  readonly store_id?: string;
  readonly position?: number;
  readonly serves_from?: number;
}

export interface Generation {
  readonly rows: Collection<TransactionDocument>;
  readonly parked: Collection<ParkedDocument>;
}

/**
 * Each index fits one combination of filters: equal values first, then the order of the list. Tombstones are in
 * none of them.
 */
const ROW_INDEXES = [
  rowIndex('by_account', ['account_id']),
  rowIndex('by_corporate', ['account_id', 'corporate_id']),
  rowIndex('by_group', ['account_id', 'corporate_group_id']),
  rowIndex('by_group_and_corporate', ['account_id', 'corporate_group_id', 'corporate_id']),
];

export type RowIndexName = 'by_account' | 'by_corporate' | 'by_group' | 'by_group_and_corporate';

function rowIndex(name: RowIndexName, equal: readonly string[]): IndexDescription {
  const isGrouped = equal.includes('corporate_group_id');
  return {
    name,
    key: Object.fromEntries([...equal, 'status', 'place'].map((field) => [field, 1])),
    partialFilterExpression: { [isGrouped ? 'corporate_group_id' : 'place']: { $exists: true } },
  };
}

export function generationOf(db: Db, generation: number): Generation {
  return { rows: db.collection(`transactions_${generation}`), parked: db.collection(parkedName(generation)) };
}

export async function readCheckpoint(db: Db): Promise<CheckpointDocument | undefined> {
  return (await checkpoints(db).findOne({ _id: CHECKPOINT_ID })) ?? undefined;
}

/** `undefined` before the first generation, or where another rendering wrote the rows. */
export function checkpointOf(document: CheckpointDocument | undefined): Checkpoint | undefined {
  if (document === undefined || document.rendering !== RENDERING_VERSION) return undefined;
  const { store_id: storeId, position, serves_from: servesFrom, generation } = document;
  if (storeId === undefined || position === undefined) return undefined;
  if (servesFrom === undefined || generation === undefined) return undefined;
  return { storeId, position, servesFrom, generation };
}

/**
 * Makes the indexes of a generation: seconds for each million rows. Unlike an index build by default it does not wait
 * for members that are unavailable.
 */
export async function makeIndexes({ rows }: Generation): Promise<void> {
  await rows.createIndexes([...ROW_INDEXES], { commitQuorum: 'majority' });
}

/**
 * Switches the checkpoint to a new generation, then drops the former ones. Of several at once the one with the highest
 * number stays; the others notice it with their first `apply`.
 */
export async function switchGeneration(
  db: Db,
  { storeId, servesFrom }: Pick<Checkpoint, 'storeId' | 'servesFrom'>,
): Promise<Checkpoint> {
  const generation = await newGeneration(db);
  const next = { generation, rendering: RENDERING_VERSION, store_id: storeId };
  const former = await checkpoints(db).findOneAndUpdate(
    { _id: CHECKPOINT_ID, generation: { $not: { $gt: generation } } },
    { $set: { ...next, position: 0, serves_from: servesFrom } },
    { returnDocument: 'before' },
  );
  if (former?.generation !== undefined) await dropUpTo(db, former.generation);
  return { storeId, position: 0, servesFrom, generation };
}

/**
 * Moves the checkpoint forward, never back. False when the view was reset. Without majority: after a failover an older
 * checkpoint is behind the rows, and the events between are applied again.
 */
export async function moveCheckpoint(
  db: Db,
  { generation, position }: Pick<Checkpoint, 'generation' | 'position'>,
): Promise<boolean> {
  const { matchedCount } = await checkpoints(db).updateOne(
    { _id: CHECKPOINT_ID, generation },
    { $max: { position } },
    { writeConcern: { w: 1 } },
  );
  return matchedCount === 1;
}

/** A number that no other call gets, whose collection is empty: it may have rows where the checkpoint was removed. */
async function newGeneration(db: Db): Promise<number> {
  for (let skipped = 0; skipped <= MAX_SKIPPED; skipped++) {
    const taken = await retryUpsert(() =>
      checkpoints(db).findOneAndUpdate(
        { _id: CHECKPOINT_ID },
        { $inc: { generations: 1 } },
        { upsert: true, returnDocument: 'after' },
      ),
    );
    const generation = taken?.generations;
    if (generation === undefined) throw new Error('the checkpoint was removed while the view was reset');
    if ((await generationOf(db, generation).rows.findOne({})) === null) return generation;
  }
  throw new Error(`${MAX_SKIPPED} generations of the view hold rows and have no checkpoint: remove them`);
}

/**
 * Only those up to the one that was in use: another process may be creating a later one. What a late projector writes to
 * a dropped one is dropped with the next reset.
 */
async function dropUpTo(db: Db, generation: number): Promise<void> {
  const found = await db
    .listCollections({ name: /^transactions_(parked_)?\d+$/ }, { nameOnly: true })
    .toArray();
  for (const { name } of found) {
    if (Number(name.slice(name.lastIndexOf('_') + 1)) <= generation) await db.collection(name).drop();
  }
}

function parkedName(generation: number): string {
  return `transactions_parked_${generation}`;
}

function checkpoints(db: Db): Collection<CheckpointDocument> {
  return db.collection(CHECKPOINTS);
}
