import type { AnyRow, Key, StorePlan, TablePlan } from '../../../tables/plan.ts';
import type { Selected } from '../../../tables/selected.ts';
import type { Tables, Write } from '../../../tables/tables.ts';
import { allDone, asTables, type TablesEngine, type Wanted } from '../../tables/as-tables.ts';
import { PolledChanges } from '../../tables/polled-changes.ts';
import type { ServerStore } from '../../tables/server-store.ts';
import { createIndexes } from '../../tables/sql.ts';
import type { PostgresConnection } from '../driver/connection.ts';
import { isOfMissing } from '../driver/errors.ts';
import { alone, SCHEMA, schemaOf, versionsIn } from '../driver/schema.ts';
import type { Run, Sql } from '../driver/session.ts';
import { inMs } from '../driver/values.ts';
import { createTable, Reading, tableIn } from './sql.ts';
import { writeAtOnce } from './write.ts';

/** The limit for building indexes. A retry after it waits for the same build. */
const INDEXES_MS = 3_600_000;
/** How long the removal of tables waits for who reads them. Every other reader waits behind it. */
const DROP_LOCK_MS = 250;

export interface OpenTablesOptions {
  /** The shared connection. Its owner closes it. */
  readonly connection: PostgresConnection;
  /** The interval at which listeners are notified, since others may have written. */
  readonly pollMs?: number;
}

/** Opens tables in PostgreSQL. The first call makes missing ones. */
export function openPostgresTables(plan: StorePlan, options: OpenTablesOptions): Tables {
  return asTables(plan.name, new PostgresTables(plan, options));
}

/** Tables in a schema. A list of writes is one statement, and with `allOrNone` a transaction. */
class PostgresTables implements TablesEngine {
  readonly changed: PolledChanges;
  readonly #plan: StorePlan;
  readonly #connection: PostgresConnection;
  readonly #schema: ServerStore;
  /** The tables with `indexesLater` whose indexes were found. */
  readonly #indexed = new Set<TablePlan>();

  constructor(plan: StorePlan, { connection, pollMs }: OpenTablesOptions) {
    const { name, version, tables } = plan;
    this.#plan = plan;
    this.#connection = connection;
    const statements = tables.flatMap((table) => [
      createTable(connection.schema, table),
      ...(table.indexesLater === true ? [] : this.#indexesOf(table)),
    ]);
    this.#schema = schemaOf(connection, { name, version, statements });
    this.changed = new PolledChanges(pollMs);
  }

  async select(table: TablePlan, found: Selected, wanted: Wanted) {
    const { equals, order, isOneRun } = found;
    const [[, keys = []] = []] = equals;
    const statement = (reading: Reading): Sql => {
      if (order.length === 0) return reading.byKey(keys, wanted.columns);
      return isOneRun ? reading.run(found, wanted) : reading.runs(found, wanted);
    };
    return this.#read(table, found, statement, wanted.withinMs);
  }

  firsts(table: TablePlan, found: Selected, groups?: readonly Key[]) {
    return this.#read(table, found, (reading) =>
      groups === undefined ? reading.groups(found) : reading.groupsOf(found, groups),
    );
  }

  async count(table: TablePlan, found: Selected, max: number) {
    const [row] = await this.#read(table, found, (reading) => reading.count(found, max));
    return row?.n as number;
  }

  async write(writes: readonly Write[], allOrNone: boolean) {
    const work = (run: Run): Promise<boolean[]> => writeAtOnce(run, this.#connection.schema, writes);
    if (!allOrNone) return this.#use(work);
    const { withinMs } = this.#plan;
    return this.#schema.use(withinMs, () =>
      this.#connection.transaction({ withinMs }, async (run) => allDone(await work(run))),
    );
  }

  async makeIndexes(table: TablePlan) {
    await this.#alone({ on: table.name, withinMs: INDEXES_MS }, async (run) => {
      for (const sql of this.#indexesOf(table)) await run({ sql });
    });
  }

  async now() {
    const [row] = await this.#use((run) => run({ sql: `SELECT ${inMs('clock_timestamp()')} AS now` }));
    return row?.now as number;
  }

  async destroy() {
    const { schema } = this.#connection;
    const { name, tables, withinMs } = this.#plan;
    try {
      await this.#alone({ on: SCHEMA, withinMs, lockMs: DROP_LOCK_MS }, async (run) => {
        for (const table of tables) await run({ sql: `DROP TABLE IF EXISTS ${tableIn(schema, table)}` });
        await run({ sql: `DELETE FROM ${versionsIn(schema)} WHERE name = $1`, values: [name] });
      });
    } finally {
      await this.close();
    }
  }

  /** Leaves the connection open for its owner. */
  async close() {
    this.#schema.close();
    this.changed.close();
  }

  /** Finds nothing in tables that another process has dropped. */
  async #read(
    table: TablePlan,
    { index }: Selected,
    statement: (reading: Reading) => Sql,
    withinMs = this.#plan.withinMs,
  ): Promise<AnyRow[]> {
    const reading = async (run: Run): Promise<AnyRow[]> => {
      await this.#assertIndex(run, table, index);
      return run(statement(new Reading(this.#connection.schema, table)));
    };
    return this.#schema.use(withinMs, async () => {
      try {
        return await this.#connection.use(withinMs, reading);
      } catch (error) {
        if (isOfMissing(error)) return []; // a reader makes no tables that another process has dropped
        throw error;
      }
    });
  }

  /** Throws if the index is not made yet: PostgreSQL would read the whole table. */
  async #assertIndex(run: Run, table: TablePlan, index: string): Promise<void> {
    if (table.indexesLater !== true || index === 'key' || this.#indexed.has(table)) return;
    const name = `"${this.#connection.schema}"."${table.name} ${index}"`;
    const [row] = await run({ sql: 'SELECT to_regclass($1) IS NOT NULL AS is', values: [name] });
    if (row?.is as unknown) this.#indexed.add(table);
    else throw new Error(`the index ${name} is still to be made`);
  }

  #use<T>(work: (run: Run) => Promise<T>): Promise<T> {
    const { withinMs } = this.#plan;
    return this.#schema.use(withinMs, () => this.#connection.use(withinMs, work));
  }

  #alone(on: Parameters<typeof alone>[1], work: (run: Run) => Promise<void>): Promise<void> {
    return this.#schema.use(on.withinMs, () => alone(this.#connection, on, work));
  }

  #indexesOf(table: TablePlan): string[] {
    return createIndexes(table, tableIn(this.#connection.schema, table));
  }
}
