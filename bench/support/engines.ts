import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import pg from 'pg';
import { findMongod, Mongod } from '../../test/support/engines/mongod.ts';
import { findPostgres, Postgres } from '../../test/support/engines/postgresql/server.ts';
import { engineUrls } from './engine-urls.ts';
import { inScratchFolder } from './scratch.ts';

/** The settings by which the service finds MongoDB, with a new database. */
export type MongodbEnv = Readonly<Record<'MONGODB_URL' | 'MONGODB_DATABASE', string>>;
/** The settings by which the service finds PostgreSQL, with a new schema. */
export type PostgresEnv = Readonly<Record<'POSTGRES_URL' | 'FUEL_POSTGRES_SCHEMA', string>>;
/** The settings by which the service finds both engines. */
export type EngineEnv = MongodbEnv & Readonly<Record<'EVENTSTORE_URL' | 'FUEL_MASTER_KEY', string>>;

/** The master key of all processes, since a store keeps the key of its first start. */
const FUEL_MASTER_KEY = Buffer.alloc(32, 'bench').toString('base64');

export type Verdict = boolean | 'not run';

/**
 * Runs a benchmark on the EventStoreDB that `EVENTSTORE_URL` names, which it writes to, and on a MongoDB: that of
 * `MONGODB_URL`, or a replica set of one in a temporary folder. Prints a line if one is missing.
 */
export async function withEngines(
  work: (env: EngineEnv, folder: string) => Promise<boolean>,
): Promise<Verdict> {
  const { EVENTSTORE_URL } = engineUrls;
  if (EVENTSTORE_URL === undefined) {
    return notRun('EVENTSTORE_URL must name an EventStoreDB node to be thrown away afterwards');
  }
  return withMongodb((mongodb, folder) => work({ EVENTSTORE_URL, FUEL_MASTER_KEY, ...mongodb }, folder));
}

/** Runs a benchmark on a MongoDB alone. */
export async function withMongodb(
  work: (env: MongodbEnv, folder: string) => Promise<Verdict>,
): Promise<Verdict> {
  const { MONGODB_URL } = engineUrls;
  const binary = MONGODB_URL === undefined ? findMongod() : undefined;
  if (MONGODB_URL === undefined && binary === undefined) {
    return notRun('there is neither MONGODB_URL nor a mongod (MONGOD_BINARY, or on the PATH)');
  }
  return inScratchFolder(async (folder) => {
    const own = binary === undefined ? undefined : new Mongod({ binary, folder: join(folder, 'mongod') });
    const url = MONGODB_URL ?? (await own?.start())?.url ?? '';
    const kill = (): void => own?.signal('SIGKILL');
    process.once('exit', kill);
    const database = `fuel-bench-${randomUUID().slice(0, 8)}`;
    try {
      return await work({ MONGODB_URL: url, MONGODB_DATABASE: database }, folder);
    } finally {
      await dropDatabase(url, database);
      await own?.kill();
      process.off('exit', kill);
    }
  });
}

/** Runs a benchmark on the PostgreSQL of `POSTGRES_URL`, or on one in a temporary folder, which syncs as others do. */
export async function withPostgres(work: (env: PostgresEnv) => Promise<Verdict>): Promise<Verdict> {
  const { POSTGRES_URL } = engineUrls;
  const binaries = POSTGRES_URL === undefined ? findPostgres() : undefined;
  if (POSTGRES_URL === undefined && binaries === undefined)
    return notRun('there is neither POSTGRES_URL nor a postgres (POSTGRES_BINARIES, or on the PATH)');
  const settings = ['fsync=on', 'shared_buffers=512MB'];
  const own = binaries === undefined ? undefined : await new Postgres({ binaries, settings }).start();
  const url = POSTGRES_URL ?? own?.url ?? '';
  const schema = `fuel_bench_${randomUUID().slice(0, 8)}`;
  try {
    return await work({ POSTGRES_URL: url, FUEL_POSTGRES_SCHEMA: schema });
  } finally {
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
    await own?.remove();
  }
}

/** Returns the first of a million ids that no earlier run on the same engines has used. */
export function freshId(): number {
  return Date.now() * 1_000;
}

function notRun(reason: string): 'not run' {
  process.stdout.write(`  not run: ${reason}\n`);
  return 'not run';
}

async function dropDatabase(url: string, database: string): Promise<void> {
  const client = new MongoClient(url);
  await client.db(database).dropDatabase();
  await client.close();
}
