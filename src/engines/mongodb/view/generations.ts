import type { Collection, Db, IndexDescription } from 'mongodb';
import type { Anchor } from '../../../event-store/store-identity.ts';
import {
  type BuildCheckpoint,
  type BuildPlace,
  type Checkpoint,
  canContinue,
  firstCheckpoint,
} from '../../../pull/view/checkpoint.ts';
import type { AppliedTo } from '../../../pull/view/transactions-view.ts';
import { optionalColumnOf, ROW_INDEX_NAMES, ROW_INDEXES } from '../../stored/rows.ts';
import { retryUpsert } from '../driver/prepared-collections.ts';
import type { ParkedDocument, TransactionDocument } from './documents.ts';

const CHECKPOINTS = 'view_checkpoint';
/** The document of the view that is served, and of the one that is being built. */
const SERVED = 'transactions';
const BUILD = 'transactions-build';
type CheckpointId = typeof SERVED | typeof BUILD;
/** Numbers that are skipped because their collection has rows: as many as collections were left over. */
const MAX_SKIPPED = 1_000;

export interface CheckpointDocument {
  readonly _id: string;
  /** The highest generation that was ever used; only of the served view. */
  readonly generations?: number;
  /** What follows is absent until the first generation is in use. */
  readonly generation?: number;
  readonly rendering?: number;
  readonly store_id?: string;
  readonly position?: number;
  /** Its position comes first: by it two are compared. */
  readonly anchor?: Anchor | null;
  readonly serves_from?: number;
  /** Only of a build. */
  readonly since?: { readonly at: Date; readonly position: number; readonly events: number };
}

export interface Generation {
  readonly rows: Collection<TransactionDocument>;
  readonly parked: Collection<ParkedDocument>;
}

const INDEXES = ROW_INDEX_NAMES.map(
  (name): IndexDescription => ({
    name,
    key: Object.fromEntries([...ROW_INDEXES[name], 'status', 'place'].map((field) => [field, 1])),
    partialFilterExpression: { [optionalColumnOf(name) ?? 'place']: { $exists: true } },
  }),
);

export function generationOf(db: Db, generation: number): Generation {
  return { rows: db.collection(`transactions_${generation}`), parked: db.collection(parkedName(generation)) };
}

/** `undefined` before the first generation. */
export async function readCheckpoint(db: Db): Promise<Checkpoint | undefined> {
  return checkpointIn(await checkpoints(db).findOne({ _id: SERVED }));
}

/** `undefined` where nothing is being built, or it is served already, by a process that was killed right after that. */
export async function readBuild(db: Db): Promise<BuildCheckpoint | undefined> {
  const [served, build] = await Promise.all([readCheckpoint(db), checkpoints(db).findOne({ _id: BUILD })]);
  const checkpoint = checkpointIn(build);
  if (checkpoint === undefined || checkpoint.generation === served?.generation) return undefined;
  const { at, ...since } = build?.since ?? { at: new Date(0), position: 0, events: 0 };
  return { ...checkpoint, since: { ...since, atMs: at.getTime() } };
}

function checkpointIn(document: CheckpointDocument | null): Checkpoint | undefined {
  const {
    store_id: storeId,
    position,
    serves_from: servesFrom,
    generation,
    rendering,
    anchor,
  } = document ?? {};
  if (storeId === undefined || position === undefined || rendering === undefined) return undefined;
  if (servesFrom === undefined || generation === undefined) return undefined;
  return { storeId, position, anchor: anchor ?? undefined, servesFrom, generation, rendering };
}

/**
 * Makes the indexes of a generation: seconds for each million rows. Unlike an index build by default it does not wait
 * for members that are unavailable.
 */
export async function makeIndexes({ rows }: Generation): Promise<void> {
  await rows.createIndexes(INDEXES, { commitQuorum: 'majority' });
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
  const next = firstCheckpoint({ storeId, servesFrom, generation });
  const former = await checkpoints(db).findOneAndUpdate(
    { _id: SERVED, generation: { $not: { $gt: generation } } },
    { $set: fieldsOf(next) },
    { returnDocument: 'before' },
  );
  if (former?.generation !== undefined) await dropUnused(db, former.generation);
  return next;
}

/** Serves a build in place of the present view, unless it is behind it. */
export async function serveBuild(db: Db, { since: _, ...build }: BuildCheckpoint): Promise<boolean> {
  const served = await readCheckpoint(db);
  if (served === undefined) return false;
  const { matchedCount } = await checkpoints(db).updateOne(
    { _id: SERVED, generation: served.generation, position: { $lte: build.position } },
    { $set: fieldsOf(build) },
  );
  if (matchedCount === 0) return false;
  await checkpoints(db).deleteOne({ _id: BUILD, generation: build.generation });
  await dropUnused(db, served.generation);
  return true;
}

/** Continues the build of this store and rendering; drops any other, and begins one. */
export async function startBuild(db: Db, place: BuildPlace, atMs: number): Promise<BuildCheckpoint> {
  const left = await checkpoints(db).findOne({ _id: BUILD }); // before it is judged: a later one is another process's
  const present = await readBuild(db);
  const continued = canContinue(present, place) ? present : undefined;
  const build = continued ?? (await beginBuild(db, left?.generation, place));
  const { generation, position } = build;
  const since = { at: new Date(atMs), position, events: 0 };
  await checkpoints(db).updateOne({ _id: BUILD, generation }, { $set: { since } });
  return { ...build, since: { atMs, position, events: 0 } };
}

/** Drops what is `left` of another one, and begins a build, unless another process has: returns that. */
async function beginBuild(
  db: Db,
  left: number | undefined,
  { storeId, servesFrom }: Pick<Checkpoint, 'storeId' | 'servesFrom'>,
): Promise<BuildCheckpoint> {
  if (left !== undefined) await dropBuild(db, left);
  const next = firstCheckpoint({ storeId, servesFrom, generation: await newGeneration(db) });
  await retryUpsert(() =>
    checkpoints(db).updateOne({ _id: BUILD }, { $setOnInsert: fieldsOf(next) }, { upsert: true }),
  );
  const begun = await readBuild(db);
  if (begun === undefined) throw new Error('the build of the view was dropped while it began');
  return begun;
}

async function dropBuild(db: Db, generation: number): Promise<void> {
  await checkpoints(db).deleteOne({ _id: BUILD, generation });
  await dropUnused(db, generation);
}

/** The generation in use with this number: served, or being built. */
export async function readInUse(
  db: Db,
  generation: number,
): Promise<{ readonly id: CheckpointId; readonly checkpoint: Checkpoint } | undefined> {
  const served = await readCheckpoint(db);
  if (served?.generation === generation) return { id: SERVED, checkpoint: served };
  const build = await readBuild(db);
  return build?.generation === generation ? { id: BUILD, checkpoint: build } : undefined;
}

function fieldsOf({ storeId, servesFrom, anchor, ...checkpoint }: Checkpoint) {
  return { ...checkpoint, anchor: anchor ?? null, store_id: storeId, serves_from: servesFrom };
}

/**
 * Moves the checkpoint forward, never back. False when the view was reset, or the build dropped. Without majority: after
 * a failover an older checkpoint is behind the rows, and the events between are applied again.
 */
export async function moveCheckpoint(
  db: Db,
  { generation, position, anchor }: AppliedTo,
  { id = SERVED, events = 0 }: { readonly id?: CheckpointId; readonly events?: number } = {},
): Promise<boolean> {
  const { matchedCount } = await checkpoints(db).updateOne(
    { _id: id, generation },
    {
      $max: { position, ...(anchor && { anchor }) },
      ...(id === BUILD && { $inc: { 'since.events': events } }),
    },
    { writeConcern: { w: 1 } },
  );
  return matchedCount === 1;
}

/** A number that no other call gets, whose collection is empty: it may have rows where the checkpoint was removed. */
async function newGeneration(db: Db): Promise<number> {
  for (let skipped = 0; skipped <= MAX_SKIPPED; skipped++) {
    const taken = await retryUpsert(() =>
      checkpoints(db).findOneAndUpdate(
        { _id: SERVED },
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
 * Removes the generations up to the given one that are neither served nor being built; another process may be creating a
 * later one. What a late projector writes to a dropped one is dropped with the next switch.
 */
export async function dropUnused(db: Db, upTo: number): Promise<void> {
  const [served, build] = await Promise.all([readCheckpoint(db), readBuild(db)]);
  const found = await db
    .listCollections({ name: /^transactions_(parked_)?\d+$/ }, { nameOnly: true })
    .toArray();
  for (const { name } of found) {
    const generation = Number(name.slice(name.lastIndexOf('_') + 1));
    const isUsed = generation === served?.generation || generation === build?.generation;
    if (generation <= upTo && !isUsed) await db.collection(name).drop();
  }
}

function parkedName(generation: number): string {
  return `transactions_parked_${generation}`;
}

function checkpoints(db: Db): Collection<CheckpointDocument> {
  return db.collection(CHECKPOINTS);
}
