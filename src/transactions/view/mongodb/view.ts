import { type Db, MongoServerError } from 'mongodb';
import type { TransactionRow } from '../../../../projections/transactions.ts';
import type { Clock } from '../../../clock.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { FuelError } from '../../../errors.ts';
import { ERASED_REVISION } from '../../../event-store/event-store.ts';
import type { MongoConnection } from '../../../mongodb/connection.ts';
import { type CollectionsPlan, PreparedCollections } from '../../../mongodb/prepared-collections.ts';
import type { ViewChange } from '../../project-event.ts';
import type {
  Checkpoint,
  PageQuery,
  ParkedTransactionEvent,
  TransactionsView,
  ViewPage,
} from '../transactions-view.ts';
import { applyChanges } from './changes.ts';
import { rowOf } from './documents.ts';
import {
  beginGeneration,
  checkpointOf,
  type Generation,
  generationOf,
  makeIndexes,
  moveCheckpoint,
  readCheckpoint,
} from './generations.ts';
import { type PageRead, readPage } from './page.ts';
import { replaceRow } from './replace.ts';

/** So that the API says within 2 s that MongoDB is away. */
const PAGE_MS = 1_200;
/** Pages go on from a former generation for at most this long, where whoever began anew died before dropping it. */
const KNOWN_FOR_MS = 1_000;
const READ_MS = 5_000;
const WRITE_MS = 30_000;
/** Going on after it waits for the same index build. */
const INDEXES_MS = 3_600_000;
/** A view that is begun anew again and again while a page is read is not there to be served. */
const MAX_LOOKS = 3;
const MAX_TIME_EXPIRED = 50;
/** Said of a query whose index, or whose collection in its midst, is gone. */
const MAY_BE_DROPPED = new Set([2, 175]);

/** The collections are those of each generation: `begin` makes them. */
const PLAN: CollectionsPlan = { name: 'transactions-view', version: 1, collections: {} };

/**
 * The transactions view in MongoDB, for any number of processes. The rows of a generation stand in a collection of
 * their own, `transactions_<generation>`, and what was parked in `transactions_parked_<generation>`; the
 * document in `view_checkpoint` says which one is in use. A projector that was overtaken by `begin` writes to a
 * collection that nobody reads.
 *
 * - A page is one round trip, and never a part of the list. It is read from a generation that is known to be
 *   complete, and those are dropped whole. A query finds nothing in a dropped one: an empty answer is given only
 *   when the checkpoint, read after it, names the same generation. One that a late write made again has no
 *   indexes: the query, which names its index, is refused.
 * - A generation gets its indexes when it has become complete, which is faster than to keep them while it is
 *   filled. Nothing reads pages before.
 * - Rows and what is parked are acknowledged by a majority before the checkpoint moves.
 * - Sharded by `{ account_id: 1, _id: 1 }`, a page asks the shards of its account alone, and rows are written to the
 *   shard of theirs; only `find`, and changes of rows that are there already, look by id on all of them. An id is
 *   then unique within an account: of an event that names a wrong account, and of an erasure, it matters that the
 *   transaction's record came first, as it does in the log. The next generation's empty collection is sharded
 *   before `begin`, which uses it as it is.
 * - `erase`, `retry` and `replace` do nothing before the first `begin`: there is nothing, and what is begun later
 *   is made from the events.
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
  /** A generation stays complete as long as it is in use. */
  #complete: { readonly generation: number; readonly learntAtMs: number } | undefined;

  constructor(connection: MongoConnection, clock: Clock) {
    this.#collections = new PreparedCollections(connection, PLAN);
    this.#clock = clock;
  }

  async page(query: PageQuery): Promise<ViewPage> {
    return this.#collections.use(PAGE_MS, async (db) => {
      for (let look = 0; look < MAX_LOOKS; look++) {
        const generation = this.#known() ?? (await this.#learn(db));
        const page = await this.#look(db, generation, query);
        const isServed = page !== undefined && (page.isProven || (await this.#learn(db)) === generation);
        if (isServed) {
          const rows = page.rows.slice(0, query.limit);
          return { rows, hasMore: page.rows.length > query.limit, entriesRead: undefined };
        }
      }
      throw beingBuilt();
    });
  }

  async find(transactionId: number): Promise<TransactionRow | 'hidden' | undefined> {
    const found = await this.#present(READ_MS, ({ rows }) => rows.findOne({ _id: transactionId }));
    return found === undefined || found === null ? undefined : (rowOf(found) ?? 'hidden');
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    return checkpointOf(await this.#collections.use(READ_MS, readCheckpoint));
  }

  async begin(storeId: string, servesFrom: number): Promise<Checkpoint> {
    const begun = await this.#collections.use(WRITE_MS, (db) => beginGeneration(db, { storeId, servesFrom }));
    if (servesFrom === 0) await this.#makeIndexes(begun.generation);
    return begun;
  }

  async apply(
    changes: readonly ViewChange[],
    to: { readonly generation: number; readonly position: number },
  ): Promise<readonly ParkedTransactionEvent[] | 'reset'> {
    const before = await this.checkpoint();
    if (before?.generation !== to.generation) return 'reset';
    if (changes.length === 0 && before.position >= to.position) return [];
    const parked = await this.#collections.use(WRITE_MS, (db) =>
      applyChanges(generationOf(db, to.generation), changes, this.#clock.now()),
    );
    const completes = before.position < before.servesFrom && before.servesFrom <= to.position;
    if (completes) await this.#makeIndexes(to.generation);
    const moved = await this.#collections.use(WRITE_MS, (db) => moveCheckpoint(db, to));
    return moved ? parked : 'reset';
  }

  async parked(): Promise<ParkedTransactionEvent[]> {
    const found = await this.#present(READ_MS, ({ parked }) => parked.find().sort({ _id: 1 }).toArray());
    return (found ?? []).map(({ _id: position, parked_at, ...event }) => ({
      position,
      ...event,
      parkedAtMs: parked_at.getTime(),
    }));
  }

  /** By the index of ids: the server's own count of a collection may be wrong after a crash. */
  async countParked(): Promise<number> {
    const count = await this.#present(READ_MS, ({ parked }) => parked.countDocuments({}, { hint: '_id_' }));
    return count ?? 0;
  }

  async retry(changes: readonly ViewChange[]): Promise<void> {
    await this.#present(WRITE_MS, async (generation) => {
      const parked = await applyChanges(generation, changes, this.#clock.now());
      const still = new Set(parked.map(({ position }) => position));
      const done = changes.map(({ position }) => position).filter((position) => !still.has(position));
      await generation.parked.deleteMany({ _id: { $in: done } });
    });
  }

  async erase(transactionId: number): Promise<void> {
    await this.#present(WRITE_MS, async (generation) => {
      const stream = transactionStream(transactionId);
      const change = { kind: 'erase', revision: ERASED_REVISION, id: transactionId } as const;
      await applyChanges(generation, [{ position: 0, stream, type: 'erase', change }], this.#clock.now());
      await generation.parked.deleteMany({ stream });
    });
  }

  async replace(transactionId: number, changes: readonly ViewChange[]): Promise<void> {
    await this.#present(WRITE_MS, (generation) =>
      replaceRow(generation, { transactionId, changes, atMs: this.#clock.now() }),
    );
  }

  async close(): Promise<void> {
    this.#collections.close();
  }

  /** The complete generation that was in use a moment ago. */
  #known(): number | undefined {
    if (this.#complete === undefined) return undefined;
    const ageMs = this.#clock.now() - this.#complete.learntAtMs;
    return ageMs >= 0 && ageMs < KNOWN_FOR_MS ? this.#complete.generation : undefined;
  }

  /** The generation in use; throws `STORE_UNAVAILABLE` unless it is complete. */
  async #learn(db: Db): Promise<number> {
    const learntAtMs = this.#clock.now();
    this.#complete = undefined;
    const checkpoint = checkpointOf(await readCheckpoint(db));
    if (checkpoint === undefined || checkpoint.position < checkpoint.servesFrom) throw beingBuilt();
    const { generation } = checkpoint;
    this.#complete = { generation, learntAtMs };
    return generation;
  }

  /** `undefined` where the generation is no longer in use. */
  async #look(db: Db, generation: number, query: PageQuery): Promise<PageRead | undefined> {
    try {
      return await readPage(db, generation, { query, maxTimeMS: PAGE_MS });
    } catch (error) {
      if (!(error instanceof MongoServerError)) throw error;
      if (error.code === MAX_TIME_EXPIRED) throw tooSlow(error);
      if (!MAY_BE_DROPPED.has(Number(error.code)) || (await this.#learn(db)) === generation) throw error;
      return undefined;
    }
  }

  async #makeIndexes(generation: number): Promise<void> {
    await this.#collections.use(INDEXES_MS, (db) => makeIndexes(generationOf(db, generation)));
  }

  /** Works on the generation in use; `undefined` where there is none. */
  async #present<T>(withinMs: number, work: (generation: Generation) => Promise<T>): Promise<T | undefined> {
    return this.#collections.use(withinMs, async (db) => {
      const generation = (await readCheckpoint(db))?.generation;
      return generation === undefined ? undefined : work(generationOf(db, generation));
    });
  }
}

function beingBuilt(): FuelError {
  return new FuelError('STORE_UNAVAILABLE', 'the transactions view is being built');
}

function tooSlow(cause: Error): FuelError {
  return new FuelError('STORE_UNAVAILABLE', `MongoDB took longer than ${PAGE_MS} ms for a page`, { cause });
}
