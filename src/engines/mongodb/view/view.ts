import { type Collection, type Db, type FindCursor, MongoServerError, type WithId } from 'mongodb';
import type { RowState, TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../base/clock.ts';
import { FuelError } from '../../../base/errors.ts';
import { MAX_PARKED_READ } from '../../../event-store/event-store.ts';
import type { ViewChange } from '../../../pull/record/project-event.ts';
import {
  assertServable,
  type BuildCheckpoint,
  type BuildPlace,
  type Checkpoint,
  isComplete,
  type ParkedTransactionEvent,
} from '../../../pull/view/checkpoint.ts';
import type {
  AppliedTo,
  PageQuery,
  ParkedPage,
  TransactionsView,
  ViewPage,
} from '../../../pull/view/transactions-view.ts';
import type { MongoConnection } from '../driver/connection.ts';
import { type CollectionsPlan, PreparedCollections } from '../driver/prepared-collections.ts';
import { applyChanges, eraseRow, replaceRow } from './changes.ts';
import { stateOf, type TransactionDocument } from './documents.ts';
import {
  dropUnused,
  type Generation,
  generationOf,
  makeIndexes,
  moveCheckpoint,
  readBuild,
  readCheckpoint,
  readInUse,
  serveBuild,
  startBuild,
  switchGeneration,
} from './generations.ts';
import { type PageRead, readPage } from './page.ts';

/** So that the API answers within 2 s that MongoDB is unavailable. */
const PAGE_MS = 1_200;
/** Pages may come from a former generation for this long, where the process that reset the view was killed. */
const KNOWN_FOR_MS = 1_000;
const READ_MS = 5_000;
const WRITE_MS = 30_000;
/** A retry after it waits for the same index build. */
const INDEXES_MS = 3_600_000;
/** A view that is reset this often while a page is read can't be served. */
const MAX_READS = 3;
const MAX_TIME_EXPIRED = 50;
const BY_ID = { hint: '_id_' };
/** The errors of a query whose index, or whose collection, is dropped. */
const MAY_BE_DROPPED = new Set([2, 175]);

/** The collections are those of each generation: `reset` makes them. */
export const PLAN: CollectionsPlan = {
  name: 'transactions-view',
  version: 2,
  collections: {},
  removed: ['view_segments'],
};

/**
 * The transactions view in MongoDB, for any number of processes. Each generation has its collections,
 * `transactions_<generation>` and `transactions_parked_<generation>`; the document in `view_checkpoint` says which one
 * is in use. A projector of a former generation writes to a collection that no process reads.
 *
 * - A page is one round trip, and always complete. It is read from a generation that is known to be complete, and
 *   generations are dropped whole. A query finds nothing in a dropped one: an empty page is returned only when the
 *   checkpoint, read after it, has the same generation. A collection that a late write has recreated has no indexes:
 *   the query, which names its index, is refused.
 * - A generation gets its indexes when it has become complete, which is faster than to update them while it is filled.
 * - Rows and parked events are acknowledged by a majority before the checkpoint moves.
 * - Sharded by `{ account_id: 1, _id: 1 }`, a page and the writes of a row need only the shard of the account; `find`
 *   and changes of existing rows search all shards by id. An id is then unique only within an account, so an event that
 *   names a wrong account, or an erasure, must come after the transaction's record, as it does in the log. The empty
 *   collection of the next generation is sharded before `reset`, which uses it as it is.
 * - `erase`, `retry` and `replace` do nothing before the first `reset`: the view will be built from the events.
 */
export function openMongoView(options: {
  readonly connection: MongoConnection;
  readonly clock: Clock;
}): TransactionsView {
  return new MongoTransactionsView(options.connection, options.clock);
}

class MongoTransactionsView implements TransactionsView {
  readonly #collections: PreparedCollections;
  readonly #clock: Clock;
  #complete: { readonly generation: number; readonly readAtMs: number } | undefined;

  constructor(connection: MongoConnection, clock: Clock) {
    this.#collections = new PreparedCollections(connection, PLAN);
    this.#clock = clock;
  }

  async page(query: PageQuery): Promise<ViewPage> {
    return this.#collections.use(PAGE_MS, async (db) => {
      for (let reads = 0; reads < MAX_READS; reads++) {
        const generation = this.#knownGeneration() ?? (await this.#readGeneration(db));
        const page = await this.#tryPage(db, generation, query);
        const isServed =
          page !== undefined && (page.isProven || (await this.#readGeneration(db)) === generation);
        if (isServed) {
          const rows = page.rows.slice(0, query.limit);
          return { rows, hasMore: page.rows.length > query.limit, entriesRead: undefined };
        }
      }
      throw new FuelError('STORE_UNAVAILABLE', 'the transactions view is reset again and again');
    });
  }

  async find(transactionIds: readonly number[], generation?: number): Promise<ReadonlyMap<number, RowState>> {
    const wanted = { _id: { $in: [...transactionIds] } };
    const found = await this.#read(({ rows }) => rows.find(wanted, BY_ID).toArray(), generation);
    return new Map((found ?? []).map((document) => [document._id, stateOf(document)]));
  }

  async rowsAfter(afterId: number, limit: number, generation?: number): Promise<TransactionRow[]> {
    const found = await this.#read(({ rows }) => visibleAfter(rows, afterId, limit).toArray(), generation);
    return (found ?? []).flatMap((document) => stateOf(document).shown ?? []);
  }

  async idsAfter(afterId: number, limit: number): Promise<number[]> {
    const found = await this.#read(({ rows }) =>
      visibleAfter(rows, afterId, limit).project<{ _id: number }>({ _id: 1 }).toArray(),
    );
    return (found ?? []).map(({ _id }) => _id);
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    return this.#collections.use(READ_MS, (db) => readCheckpoint(db));
  }

  async building(): Promise<BuildCheckpoint | undefined> {
    return this.#collections.use(READ_MS, readBuild);
  }

  async reset(storeId: string, servesFrom: number): Promise<Checkpoint> {
    const next = await this.#collections.use(WRITE_MS, (db) => switchGeneration(db, { storeId, servesFrom }));
    if (servesFrom === 0) await this.#makeIndexes(next.generation);
    return next;
  }

  async apply(
    changes: readonly ViewChange[],
    to: AppliedTo,
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    const use = await this.#collections.use(READ_MS, (db) => readInUse(db, to.generation));
    if (use === undefined) return 'reset';
    const { id, checkpoint: before } = use;
    if (changes.length === 0 && before.position >= to.position) return [];
    const parked = await this.#collections.use(WRITE_MS, (db) =>
      applyChanges(generationOf(db, to.generation), changes, this.#clock.now()),
    );
    const completes = !isComplete(before) && before.servesFrom <= to.position;
    if (completes) await this.#makeIndexes(to.generation);
    const applied = { id, events: changes.length };
    const moved = await this.#collections.use(WRITE_MS, (db) => moveCheckpoint(db, to, applied));
    return moved ? parked : 'reset';
  }

  async parked({ after = 0, limit = MAX_PARKED_READ }: ParkedPage = {}): Promise<ParkedTransactionEvent[]> {
    const isAfter = { _id: { $gt: after } };
    const found = await this.#read(({ parked }) =>
      parked.find(isAfter).sort({ _id: 1 }).limit(limit).toArray(),
    );
    return (found ?? []).map(({ _id: position, parked_at, ...event }) => ({
      position,
      ...event,
      parkedAtMs: parked_at.getTime(),
    }));
  }

  /** By the index of ids: the collection's own count may be wrong after a crash. */
  async countParked(): Promise<number> {
    const count = await this.#read(({ parked }) => parked.countDocuments({}, BY_ID));
    return count ?? 0;
  }

  async retry(changes: readonly ViewChange[]): Promise<void> {
    await this.#inGeneration(WRITE_MS, async (generation) => {
      const parked = await applyChanges(generation, changes, this.#clock.now());
      const still = new Set(parked.map(({ position }) => position));
      const done = changes.map(({ position }) => position).filter((position) => !still.has(position));
      await generation.parked.deleteMany({ _id: { $in: done } });
    });
  }

  async erase(transactionId: number): Promise<void> {
    const atMs = this.#clock.now();
    await this.#inEach((generation) => eraseRow(generation, { transactionId, atMs }));
  }

  async replace(transactionId: number, changes: readonly ViewChange[]): Promise<void> {
    const atMs = this.#clock.now();
    await this.#inEach((generation) => replaceRow(generation, { transactionId, changes, atMs }));
  }

  async startBuild(place: BuildPlace): Promise<BuildCheckpoint> {
    const atMs = this.#clock.now();
    const build = await this.#collections.use(WRITE_MS, (db) => startBuild(db, place, atMs));
    if (place.servesFrom === 0) await this.#makeIndexes(build.generation);
    return build;
  }

  async serveBuild(generation: number): Promise<boolean> {
    return this.#collections.use(WRITE_MS, async (db) => {
      const build = await readBuild(db);
      if (build?.generation !== generation) return (await readCheckpoint(db))?.generation === generation;
      return isComplete(build) && (await serveBuild(db, build));
    });
  }

  async close(): Promise<void> {
    this.#collections.close();
  }

  /** A build that begins after the first look reads a log in which that is so already; one that is served meanwhile has it too. */
  async #inEach(write: (generation: Generation) => Promise<void>): Promise<void> {
    const build = await this.#collections.use(READ_MS, (db) => readBuild(db));
    if (build !== undefined)
      await this.#collections.use(WRITE_MS, (db) => write(generationOf(db, build.generation)));
    await this.#inGeneration(WRITE_MS, write);
    // Nor must a generation keep the former row that an interrupted switch has left.
    await this.#collections.use(WRITE_MS, async (db) => {
      const served = await readCheckpoint(db);
      if (served !== undefined) await dropUnused(db, served.generation);
    });
  }

  /** The complete generation that was in use less than `KNOWN_FOR_MS` ago. */
  #knownGeneration(): number | undefined {
    if (this.#complete === undefined) return undefined;
    const ageMs = this.#clock.now() - this.#complete.readAtMs;
    return ageMs >= 0 && ageMs < KNOWN_FOR_MS ? this.#complete.generation : undefined;
  }

  /** The generation in use; throws `STORE_UNAVAILABLE` unless it is complete. */
  async #readGeneration(db: Db): Promise<number> {
    const readAtMs = this.#clock.now();
    this.#complete = undefined;
    const checkpoint = await readCheckpoint(db);
    assertServable(checkpoint);
    const { generation } = checkpoint;
    this.#complete = { generation, readAtMs };
    return generation;
  }

  /** `undefined` where the generation is no longer in use. */
  async #tryPage(db: Db, generation: number, query: PageQuery): Promise<PageRead | undefined> {
    try {
      return await readPage(db, generation, { query, maxTimeMS: PAGE_MS });
    } catch (error) {
      if (!(error instanceof MongoServerError)) throw error;
      if (error.code === MAX_TIME_EXPIRED) throw tooSlow(error);
      if (!MAY_BE_DROPPED.has(Number(error.code)) || (await this.#readGeneration(db)) === generation)
        throw error;
      return undefined;
    }
  }

  async #makeIndexes(generation: number): Promise<void> {
    await this.#collections.use(INDEXES_MS, (db) => makeIndexes(generationOf(db, generation)));
  }

  #read<T>(work: (generation: Generation) => Promise<T>, generation?: number): Promise<T | undefined> {
    return generation === undefined
      ? this.#inGeneration(READ_MS, work)
      : this.#collections.use(READ_MS, (db) => work(generationOf(db, generation)));
  }

  /** Works on the generation in use; `undefined` where there is none. */
  async #inGeneration<T>(
    withinMs: number,
    work: (generation: Generation) => Promise<T>,
  ): Promise<T | undefined> {
    return this.#collections.use(withinMs, async (db) => {
      const generation = (await readCheckpoint(db))?.generation;
      return generation === undefined ? undefined : work(generationOf(db, generation));
    });
  }
}

/** Of the visible ones. */
function visibleAfter(
  rows: Collection<TransactionDocument>,
  afterId: number,
  limit: number,
): FindCursor<WithId<TransactionDocument>> {
  const visible = { _id: { $gt: afterId }, place: { $exists: true } };
  return rows.find(visible, BY_ID).sort({ _id: 1 }).limit(limit);
}

function tooSlow(cause: Error): FuelError {
  return new FuelError('STORE_UNAVAILABLE', `MongoDB took longer than ${PAGE_MS} ms for a page`, { cause });
}
