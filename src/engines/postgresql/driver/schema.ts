import pg from 'pg';
import { FuelError } from '../../../base/errors.ts';
import { PREPARE_MS, ServerStore, type StoreVersion } from '../../tables/server-store.ts';
import { type PostgresConnection, TITLE } from './connection.ts';
import { isOfMissing } from './errors.ts';
import type { Run } from './session.ts';
import type { Limits } from './settings.ts';

/** The topic that is locked while tables are made or dropped. */
export const SCHEMA = 'schema';

/** The tables of one adapter. */
export interface SchemaPlan extends StoreVersion {
  /** The statements that make what is missing. */
  readonly statements: readonly string[];
}

/** Returns the tables of an adapter, which are made with their first use. */
export function schemaOf(connection: PostgresConnection, plan: SchemaPlan): ServerStore {
  return new ServerStore(plan, {
    title: TITLE,
    versionOf: (name) => versionOf(connection, name),
    make: () => makeTables(connection, plan),
    isOfMissing,
  });
}

/** Makes the schema and the missing tables, in one process after the other. */
async function makeTables(connection: PostgresConnection, plan: SchemaPlan): Promise<void> {
  const { schema } = connection;
  const { name, version, statements } = plan;
  await alone(connection, { on: SCHEMA, withinMs: PREPARE_MS }, async (run) => {
    // to_regnamespace may answer from before the wait for the lock, since a pooler's connection has served other processes.
    const found = 'EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)';
    const [{ encoding, exists } = {}] = await run({
      sql: `SELECT current_setting('server_encoding') AS encoding, ${found} AS exists`,
      values: [schema],
    });
    if (encoding !== 'UTF8')
      throw new FuelError(
        'CONFIG_INVALID',
        `POSTGRES_URL: the encoding of its database is ${encoding}. Use a database in UTF8`,
      );
    // CREATE SCHEMA IF NOT EXISTS needs a privilege on the database even if the schema exists.
    if (!exists) await run({ sql: `CREATE SCHEMA ${pg.escapeIdentifier(schema)}` });
    const versions = versionsIn(schema);
    await run({
      sql: `CREATE TABLE IF NOT EXISTS ${versions} (name text PRIMARY KEY, version int NOT NULL)`,
    });
    for (const sql of statements) await run({ sql });
    const newest = 'greatest(known.version, excluded.version)'; // another process may be newer
    await run({
      sql: `INSERT INTO ${versions} AS known VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET version = ${newest}`,
      values: [name, version],
    });
  });
}

/** Runs a transaction that excludes all others on the same topic. */
export function alone<T>(
  connection: PostgresConnection,
  { on, ...limits }: Limits & { readonly on: string },
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const values = [`fuel ${connection.schema} ${on}`];
  return connection.transaction(limits, async (run) => {
    await run({ sql: 'SELECT pg_advisory_xact_lock(hashtext($1))', values });
    return work(run);
  });
}

/** Returns the version of an adapter's tables; `undefined` if there are none. */
export async function versionOf(connection: PostgresConnection, name: string): Promise<number | undefined> {
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
