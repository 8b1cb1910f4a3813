import pg from 'pg';
import { FuelError } from '../../../base/errors.ts';
import { inTime, type PostgresConnection, type Run } from './connection.ts';
import { isOfMissing } from './errors.ts';

/** To make the tables; also to wait for another process that does. */
const PREPARE_MS = 10_000;
/** What is locked while tables are made or dropped. */
export const SCHEMA = 'schema';

/** The tables of one adapter. */
export interface SchemaPlan {
  /** Names the plan in the table `schema_versions`. */
  readonly name: string;
  /** Raised when tables or indexes are added. */
  readonly version: number;
  /** The statements that make what is missing. */
  readonly statements: readonly string[];
}

/** The tables of one adapter, made with the first use. Closing them leaves the connection open. */
export class PreparedSchema {
  readonly #connection: PostgresConnection;
  readonly #plan: SchemaPlan;
  #prepared: Promise<void> | undefined;
  #isClosed = false;

  constructor(connection: PostgresConnection, plan: SchemaPlan) {
    this.#connection = connection;
    this.#plan = plan;
  }

  /** Does the work once the tables exist; recreates those that another process has dropped. Rejects with `STORE_CLOSED` after `close`. */
  async use<T>(withinMs: number, work: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new FuelError('STORE_CLOSED', `the tables of ${this.#plan.name} were closed`);
    return inTime(withinMs, this.#use(work));
  }

  close(): void {
    this.#isClosed = true;
  }

  async #use<T>(work: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    await this.#ready();
    try {
      return await work(this.#connection);
    } catch (error) {
      if (!isOfMissing(error)) throw error;
      this.#prepared = undefined;
      await this.#ready();
      return work(this.#connection);
    }
  }

  async #ready(): Promise<void> {
    this.#prepared ??= prepare(this.#connection, this.#plan);
    try {
      await this.#prepared;
    } catch (error) {
      this.#prepared = undefined;
      throw error;
    }
  }
}

/** Makes the schema and what is missing in it, one process after the other. Rejects with `STORE_NEWER` for a newer version. */
async function prepare(
  connection: PostgresConnection,
  { name, version, statements }: SchemaPlan,
): Promise<void> {
  const found = await versionOf(connection, name);
  if (found === version) return;
  const { schema } = connection;
  await alone(connection, { on: SCHEMA, withinMs: PREPARE_MS }, async (run) => {
    const [{ encoding, exists } = {}] = await run({
      sql: `SELECT current_setting('server_encoding') AS encoding, to_regnamespace($1) IS NOT NULL AS exists`,
      values: [pg.escapeIdentifier(schema)],
    });
    if (encoding !== 'UTF8')
      throw new FuelError('CONFIG_INVALID', `POSTGRES_URL: its database is ${encoding}, and must be UTF8`);
    // It needs a privilege on the database also where the schema is there.
    if (!exists) await run({ sql: `CREATE SCHEMA ${pg.escapeIdentifier(schema)}` });
    const versions = versionsIn(schema);
    await run({
      sql: `CREATE TABLE IF NOT EXISTS ${versions} (name text PRIMARY KEY, version int NOT NULL)`,
    });
    const [before] = await run({ sql: `SELECT version FROM ${versions} WHERE name = $1`, values: [name] });
    if (before !== undefined && Number(before.version) > version) throw newer(name, before.version, version);
    for (const sql of statements) await run({ sql });
    await run({
      sql: `INSERT INTO ${versions} VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET version = excluded.version`,
      values: [name, version],
    });
  });
}

/** Runs a transaction that excludes all others on the same topic. */
export function alone<T>(
  connection: PostgresConnection,
  { on, withinMs }: { readonly on: string; readonly withinMs: number },
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const values = [`fuel ${connection.schema} ${on}`];
  return connection.transaction(withinMs, async (run) => {
    await run({ sql: 'SELECT pg_advisory_xact_lock(hashtext($1))', values });
    return work(run);
  });
}

/** Whether these tables were ever made; `current` where they have this version, or a newer one. */
export async function preparedState(
  connection: PostgresConnection,
  { name, version }: Pick<SchemaPlan, 'name' | 'version'>,
): Promise<'missing' | 'of another version' | 'current'> {
  const found = await versionOf(connection, name);
  if (found === undefined) return 'missing';
  return found >= version ? 'current' : 'of another version';
}

async function versionOf(connection: PostgresConnection, name: string): Promise<number | undefined> {
  const sql = `SELECT version FROM ${versionsIn(connection.schema)} WHERE name = $1`;
  try {
    const [found] = await connection.use(PREPARE_MS, (run) => run({ sql, values: [name] }));
    return found && Number(found.version);
  } catch (error) {
    if (isOfMissing(error)) return undefined;
    throw error;
  }
}

export function versionsIn(schema: string): string {
  return `${pg.escapeIdentifier(schema)}.schema_versions`;
}

function newer(name: string, found: unknown, version: number): FuelError {
  return new FuelError(
    'STORE_NEWER',
    `the tables of ${name} in PostgreSQL have version ${found}, newer than ${version}, ` +
      'which this version of the service writes: run the newer version',
  );
}
