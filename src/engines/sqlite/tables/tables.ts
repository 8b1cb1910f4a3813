import { rmSync } from 'node:fs';
import { type Clock, steadyClock } from '../../../base/clock.ts';
import {
  type AnyRow,
  columnsOfIndex,
  type Key,
  type StorePlan,
  type TablePlan,
} from '../../../tables/plan.ts';
import { comparing, groupOf, runsOf, type Selected } from '../../../tables/selected.ts';
import type { ChangeSignal, Tables, Write } from '../../../tables/tables.ts';
import { allDone, asTables, type TablesEngine, type Wanted } from '../../tables/as-tables.ts';
import { CommitWatch } from '../driver/commit-watch.ts';
import { Database } from '../driver/database.ts';
import { mergeRuns } from './merge-runs.ts';
import { from, indexesOf, type Sql, schemaOf, selectOf, where } from './sql.ts';
import { isWritten } from './write.ts';

type Statement = ReturnType<Database['prepare']>;

/** How many runs SQLite merges. With more, preparing the statement would take milliseconds. */
const MAX_RUNS = 32;

export interface OpenFile {
  readonly path: string;
  /** The clock that `now` reads. */
  readonly steady?: Clock;
}

/** Returns the same statements for each version, since they make what is missing. */
export function migrationsOf(plan: StorePlan): string[] {
  return Array.from({ length: plan.version }, () => schemaOf(plan));
}

/** Opens the tables of an embedded file, and makes a missing one. Several processes and threads may have it open. */
export function openSqliteTables(plan: StorePlan, { path, steady = steadyClock }: OpenFile): Tables {
  const db = new Database(path, { ...plan, migrations: migrationsOf(plan) });
  const changed = new CommitWatch(db);
  const onClose = (isDestroyed: boolean): void => {
    db.close();
    changed.close();
    if (!isDestroyed) return;
    for (const part of ['', '-wal', '-shm']) rmSync(`${path}${part}`, { force: true });
  };
  return asTables(plan.name, new SqliteTables({ db, steady, changed, onClose }));
}

export interface SqliteTablesParts {
  readonly db: Database;
  readonly steady: Clock;
  readonly changed: ChangeSignal;
  /** Called once, by `close` or `destroy`. */
  readonly onClose: (isDestroyed: boolean) => void;
}

/** Tables in a file or in memory. Statements run on the calling thread, and a list of writes is one commit. */
export class SqliteTables implements TablesEngine {
  readonly #parts: SqliteTablesParts;
  readonly #statements = new Map<string, Statement>();

  constructor(parts: SqliteTablesParts) {
    this.#parts = parts;
  }

  get changed(): ChangeSignal {
    return this.#parts.changed;
  }

  async select(table: TablePlan, found: Selected, wanted: Wanted) {
    return found.isOneRun ? this.#rows(table, found, wanted) : this.#merged(table, found, wanted);
  }

  async firsts(table: TablePlan, found: Selected, groups?: readonly Key[]) {
    const columns = columnsOfIndex(table, found.index);
    const first = (part: Selected): AnyRow[] => this.#rows(table, part, { columns, limit: 1 });
    return this.#parts.db.read(() => {
      if (groups !== undefined) return groups.flatMap((value) => first(groupOf(found, value)));
      const [of = ''] = found.order;
      const firsts: AnyRow[] = [];
      for (let [row] = first(found); row !== undefined; [row] = first({ ...found, after: [row[of] as Key] }))
        firsts.push(row);
      return firsts;
    });
  }

  async count(table: TablePlan, found: Selected, max: number) {
    const { sql, values } = where(found);
    const some = `SELECT 1 ${from(table, found.index, [])}${sql} LIMIT ?`;
    const [row] = this.#all({ sql: `SELECT count(*) AS n FROM (${some})`, values: [...values, max] });
    return row?.n as number;
  }

  async write(writes: readonly Write[], allOrNone: boolean) {
    const prepare = (sql: string): Statement => this.#statement(sql);
    return this.#parts.db.write(() => {
      const done = writes.map((write) => isWritten(prepare, write));
      return allOrNone ? allDone(done) : done;
    });
  }

  async makeIndexes(table: TablePlan) {
    await this.#parts.db.write(() => this.#parts.db.exec(indexesOf(table).join(';\n')));
  }

  async now() {
    return Math.floor(this.#parts.steady.now());
  }

  async destroy() {
    this.#parts.onClose(true);
  }

  async close() {
    this.#parts.onClose(false);
  }

  #statement(sql: string): Statement {
    const statement = this.#statements.get(sql) ?? this.#parts.db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #all({ sql, values }: Sql): AnyRow[] {
    return this.#statement(sql).all(...values) as AnyRow[];
  }

  #rows(table: TablePlan, found: Selected, wanted: Wanted): AnyRow[] {
    return this.#all(selectOf(table, [found], wanted));
  }

  /**
   * Merges runs. SQLite does so within a statement if there are few. The number of runs in a statement is a power of two,
   * so that there are few different statements to prepare.
   */
  async #merged(table: TablePlan, found: Selected, { columns, limit }: Wanted): Promise<AnyRow[]> {
    const { order, descending } = found;
    const wanted = { columns: [...new Set([...order, ...columns])], limit };
    const runs = runsOf(found);
    if (runs.length > MAX_RUNS)
      return mergeRuns(table, found, wanted, { db: this.#parts.db, all: (sql) => this.#all(sql) });
    return this.#parts.db.read(() => {
      const rows: AnyRow[] = [];
      while (runs.length > 0) {
        const some = runs.splice(0, 2 ** Math.floor(Math.log2(runs.length)));
        for (const row of this.#all(selectOf(table, some, wanted))) rows.push(row);
      }
      return rows.sort(comparing(order, descending)).slice(0, limit);
    });
  }
}
