import type { AggregationCursor, Collection, Db, Document, FindCursor } from 'mongodb';
import {
  type AnyRow,
  columnsOfIndex,
  type Key,
  type StorePlan,
  type TablePlan,
} from '../../../tables/plan.ts';
import { comparing, rangesOf, type Selected } from '../../../tables/selected.ts';
import type { Tables, Write } from '../../../tables/tables.ts';
import { allDone, asTables, type TablesEngine, type Wanted } from '../../tables/as-tables.ts';
import { PolledChanges } from '../../tables/polled-changes.ts';
import type { ServerStore } from '../../tables/server-store.ts';
import { collectionsOf, versionsIn } from '../driver/collections.ts';
import { type MongoConnection, ONE_BATCH } from '../driver/connection.ts';
import {
  fieldOf,
  filtersOf,
  groupsFilter,
  hintOf,
  indexesOf,
  MAX_RUNS,
  projectionOf,
  sortOf,
  toRow,
} from './documents.ts';
import { runCount, runsReaching, upToPlace, withOneList } from './many-runs.ts';
import { type StoredDocument, storedIn, writeInTurn } from './write.ts';

/** The limit for building indexes. A retry after it waits for the same build. */
const INDEXES_MS = 3_600_000;

export interface OpenTablesOptions {
  /** The shared connection. Its owner closes it. */
  readonly connection: MongoConnection;
  /** The interval at which listeners are notified, since others may have written. */
  readonly pollMs?: number;
}

interface FirstOfEach {
  readonly of: string;
  readonly columns: readonly string[];
  readonly where: readonly Document[];
  readonly withinMs?: number | undefined;
}

/** Opens tables in MongoDB. The first call makes missing ones. */
export function openMongoTables(plan: StorePlan, options: OpenTablesOptions): Tables {
  return asTables(plan.name, new MongoTables(plan, options));
}

/**
 * A table is a collection, and a row is a document. A write is acknowledged once a majority of the replica set has it.
 */
class MongoTables implements TablesEngine {
  readonly changed: PolledChanges;
  readonly #plan: StorePlan;
  readonly #connection: MongoConnection;
  readonly #collections: ServerStore;

  constructor(plan: StorePlan, { connection, pollMs }: OpenTablesOptions) {
    this.#plan = plan;
    this.#connection = connection;
    const { name, version, tables } = plan;
    const collections = Object.fromEntries(
      tables.map((table) => [table.name, table.indexesLater === true ? [] : indexesOf(table)]),
    );
    this.#collections = collectionsOf(connection, { name, version, collections });
    this.changed = new PolledChanges(pollMs);
  }

  /**
   * Merges runs. If there are many, only those are merged that reach the rows that are asked for. If these have become too
   * few, since a row that was found is gone, all runs are merged.
   */
  async select(table: TablePlan, found: Selected, wanted: Wanted) {
    if (runCount(found) <= MAX_RUNS) return this.#merged(table, found, wanted);
    const begun = await this.#begun(table, found, wanted);
    const reaching = runsReaching(found, begun, wanted.limit);
    const rows = reaching.isNone ? [] : await this.#merged(table, reaching, wanted);
    return rows.length === wanted.limit || begun.length < wanted.limit
      ? rows
      : this.#merged(table, found, wanted);
  }

  async #merged(table: TablePlan, found: Selected, wanted: Wanted): Promise<AnyRow[]> {
    const { columns, limit, withinMs } = wanted;
    const { order, descending } = found;
    const parts = rangesOf(found).flatMap((range) =>
      filtersOf(table, range).map((filter) => ({ filter, sort: sortOf(table, range.order, descending) })),
    );
    const read = parts.length === 1 ? columns : [...new Set([...columns, ...order])];
    const options = { ...this.#reading(found, withinMs), projection: projectionOf(table, read), limit };
    const documents = await Promise.all(
      parts.map(({ filter, sort }) =>
        this.#read(table, (stored) => stored.find(filter, { ...options, sort }), withinMs),
      ),
    );
    const rows = documents.flat().map((document) => toRow(table, read, document));
    return parts.length === 1 ? rows : rows.sort(comparing(order, descending)).slice(0, limit);
  }

  /** Returns where each run begins that is not empty: its equal values, and the first row's value in the order. */
  async #begun(table: TablePlan, found: Selected, { withinMs }: Wanted): Promise<AnyRow[]> {
    const [of, parts] = withOneList(upToPlace(found));
    const columns = [...found.equals.map(([column]) => column), ...found.order.slice(0, 1)];
    const rows = await Promise.all(
      parts.map((part) => {
        const where = filtersOf(table, part);
        return this.#firstOfEach(table, part, { of, columns, where, withinMs });
      }),
    );
    return rows.flat();
  }

  firsts(table: TablePlan, found: Selected, groups?: readonly Key[]) {
    const [of = ''] = found.order;
    const columns = columnsOfIndex(table, found.index);
    const where = [...filtersOf(table, found), groupsFilter(table, found, groups)];
    return this.#firstOfEach(table, found, { of, columns, where });
  }

  /** Returns columns of the first row with each value of `of`, which are in the index. It reads one index entry for each. */
  async #firstOfEach(
    table: TablePlan,
    found: Selected,
    { of, columns, where, withinMs }: FirstOfEach,
  ): Promise<AnyRow[]> {
    const first = columns.map((column) => [column, { $first: `$${fieldOf(table, column)}` }]);
    const stages = [
      { $match: { $and: where } },
      { $sort: sortOf(table, columnsOfIndex(table, found.index), found.descending) },
      { $group: { ...Object.fromEntries(first), _id: `$${fieldOf(table, of)}` } },
    ];
    const options = this.#reading(found, withinMs);
    const rows = await this.#read(table, (stored) => stored.aggregate(stages, options), withinMs);
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
    return this.#use((db) => {
      if (!allOrNone) return writeInTurn(db, writes);
      return this.#connection.transaction(async (session) =>
        allDone(await writeInTurn(db, writes, { session })),
      );
    });
  }

  /** Waits only for a majority. By default an index build also waits for members that are unavailable. */
  async makeIndexes(table: TablePlan) {
    const indexes = indexesOf(table);
    await this.#within(INDEXES_MS, (db) =>
      storedIn(db, table).createIndexes(indexes, { commitQuorum: 'majority' }),
    );
  }

  async now() {
    const { localTime } = await this.#use((db) => db.command({ hello: 1 }));
    return (localTime as Date).getTime();
  }

  async destroy() {
    try {
      await this.#use(async (db) => {
        for (const { name } of this.#plan.tables) await db.collection(name).drop();
        await versionsIn(db).deleteOne({ _id: this.#plan.name });
      });
    } finally {
      await this.close();
    }
  }

  /** Leaves the connection open for its owner. */
  async close() {
    this.#collections.close();
    this.changed.close();
  }

  /** The server ends a read when nobody waits for it any more. */
  #reading(found: Selected, withinMs = this.#plan.withinMs) {
    return { hint: hintOf(found), maxTimeMS: withinMs };
  }

  #read(
    table: TablePlan,
    read: (stored: Collection<StoredDocument>) => FindCursor<Document> | AggregationCursor,
    withinMs = this.#plan.withinMs,
  ): Promise<Document[]> {
    return this.#within(withinMs, (db) => read(storedIn(db, table)).batchSize(ONE_BATCH).toArray());
  }

  #use<T>(work: (db: Db) => Promise<T>): Promise<T> {
    return this.#within(this.#plan.withinMs, work);
  }

  #within<T>(withinMs: number, work: (db: Db) => Promise<T>): Promise<T> {
    return this.#collections.use(withinMs, () => this.#connection.use(work));
  }
}
