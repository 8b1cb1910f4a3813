import type { AggregationCursor, Collection, Db, Document, FindCursor } from 'mongodb';
import { columnsOfIndex, type Key, type StorePlan, type TablePlan } from '../../../tables/plan.ts';
import { comparing, rangesOf, type Selected } from '../../../tables/selected.ts';
import type { Tables, Write } from '../../../tables/tables.ts';
import { asTables, type TablesEngine, type Wanted } from '../../tables/as-tables.ts';
import { PolledChanges } from '../../tables/polled-changes.ts';
import { type MongoConnection, ONE_BATCH } from '../driver/connection.ts';
import { isDuplicateKey, PreparedCollections } from '../driver/prepared-collections.ts';
import {
  fieldOf,
  filtersOf,
  groupsFilter,
  hintOf,
  indexesOf,
  projectionOf,
  sortOf,
  toRow,
} from './documents.ts';
import { NONE, type StoredDocument, storedIn, writeInTurn } from './write.ts';

/** A retry after it waits for the same index build. */
const INDEXES_MS = 3_600_000;

export interface OpenTablesOptions {
  /** Shared; its owner closes it. */
  readonly connection: MongoConnection;
  /** How soon listeners are told that others may have written. */
  readonly pollMs?: number;
}

/** Opens the tables of a MongoDB; the first call makes missing ones. */
export function openMongoTables(plan: StorePlan, options: OpenTablesOptions): Tables {
  return asTables(plan.name, new MongoTables(plan, options));
}

/** The tables of a MongoDB: a collection each, a document a row. What is acknowledged is on a majority of the replica set. */
export class MongoTables implements TablesEngine {
  readonly changed: PolledChanges;
  readonly #plan: StorePlan;
  readonly #connection: MongoConnection;
  readonly #collections: PreparedCollections;

  constructor(plan: StorePlan, { connection, pollMs }: OpenTablesOptions) {
    this.#plan = plan;
    this.#connection = connection;
    const { name, version, tables } = plan;
    const collections = Object.fromEntries(
      tables.map((table) => [table.name, table.indexesLater === true ? [] : indexesOf(table)]),
    );
    this.#collections = new PreparedCollections(connection, { name, version, collections });
    this.changed = new PolledChanges(pollMs);
  }

  async select(table: TablePlan, found: Selected, { columns, limit }: Wanted) {
    const { order, descending } = found;
    const parts = rangesOf(found).flatMap((range) =>
      filtersOf(table, range).map((filter) => ({ filter, sort: sortOf(table, range.order, descending) })),
    );
    const read = parts.length === 1 ? columns : [...new Set([...columns, ...order])];
    const options = { ...this.#reading(found), projection: projectionOf(table, read), limit };
    const documents = await Promise.all(
      parts.map(({ filter, sort }) =>
        this.#read(table, (stored) => stored.find(filter, { ...options, sort })),
      ),
    );
    const rows = documents.flat().map((document) => toRow(table, read, document));
    return parts.length === 1 ? rows : rows.sort(comparing(order, descending)).slice(0, limit);
  }

  async firsts(table: TablePlan, found: Selected, groups?: readonly Key[]) {
    const columns = columnsOfIndex(table, found.index);
    const [of = ''] = found.order;
    const first = columns.map((column) => [column, { $first: `$${fieldOf(table, column)}` }]);
    const stages = [
      { $match: { $and: [...filtersOf(table, found), groupsFilter(table, found, groups)] } },
      { $sort: sortOf(table, columns, found.descending) },
      { $group: { ...Object.fromEntries(first), _id: `$${fieldOf(table, of)}` } },
    ];
    const rows = await this.#read(table, (stored) => stored.aggregate(stages, this.#reading(found)));
    return rows.map((row) => toRow(table, columns, { ...row, _id: row[table.key] }));
  }

  async count(table: TablePlan, found: Selected, max: number) {
    const options = { ...this.#reading(found), limit: max };
    const counts = filtersOf(table, found).map((filter) =>
      this.#use((db) => storedIn(db, table).countDocuments(filter, options)),
    );
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  write(writes: readonly Write[], allOrNone: boolean) {
    return this.#use((db) => (allOrNone ? this.#together(db, writes) : writeInTurn(db, writes)));
  }

  /** Unlike an index build by default it does not wait for members that are unavailable. */
  async makeIndexes(table: TablePlan) {
    const indexes = indexesOf(table);
    await this.#collections.use(INDEXES_MS, (db) =>
      storedIn(db, table).createIndexes(indexes, { commitQuorum: 'majority' }),
    );
  }

  async now() {
    const { localTime } = await this.#use((db) => db.command({ hello: 1 }));
    return (localTime as Date).getTime();
  }

  async destroy() {
    await this.#use(async (db) => {
      for (const { name } of this.#plan.tables) await db.collection(name).drop();
      await db.collection<{ _id: string }>('schema_versions').deleteOne({ _id: this.#plan.name });
    });
    await this.close();
  }

  /** Leaves the connection to its owner. */
  async close() {
    this.#collections.close();
    this.changed.close();
  }

  /** The server ends a read that nobody waits for any more. */
  #reading(found: Selected) {
    return { hint: hintOf(found), maxTimeMS: this.#plan.withinMs };
  }

  #read(
    table: TablePlan,
    read: (stored: Collection<StoredDocument>) => FindCursor<Document> | AggregationCursor,
  ): Promise<Document[]> {
    return this.#use((db) => read(storedIn(db, table)).batchSize(ONE_BATCH).toArray());
  }

  #use<T>(work: (db: Db) => Promise<T>): Promise<T> {
    return this.#collections.use(this.#plan.withinMs, work);
  }

  async #together(db: Db, writes: readonly Write[]): Promise<boolean[]> {
    try {
      return await this.#connection.transaction(async (session) => {
        const done = await writeInTurn(db, writes, session);
        if (done.includes(false)) throw NONE;
        return done;
      });
    } catch (error) {
      if (error !== NONE && !isDuplicateKey(error)) throw error;
      return writes.map(() => false);
    }
  }
}
