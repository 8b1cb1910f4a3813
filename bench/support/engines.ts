import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { findMongod, Mongod } from '../../test/support/engines/mongod.ts';
import { engineUrls } from './engine-urls.ts';
import { inScratchFolder } from './scratch.ts';

/** The settings by which the service finds MongoDB; the database is a new one. */
export type MongodbEnv = Readonly<Record<'MONGODB_URL' | 'MONGODB_DATABASE', string>>;
/** Those by which it finds both engines. */
export type EngineEnv = MongodbEnv & Readonly<Record<'EVENTSTORE_URL' | 'FUEL_MASTER_KEY', string>>;

/** One for all: a store keeps to the key of its first start. */
const FUEL_MASTER_KEY = Buffer.alloc(32, 'bench').toString('base64');

export type Verdict = boolean | 'not run';

/**
 * Runs a benchmark on the EventStoreDB that `EVENTSTORE_URL` names, which it writes into, and on a MongoDB: that of
 * `MONGODB_URL`, or a replica set of one in a temporary folder. Says in a line what is missing where one is.
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

/** The same with a MongoDB alone. */
export async function withMongodb(
  work: (env: MongodbEnv, folder: string) => Promise<boolean>,
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

/** Ids that no earlier run on the same engines has used: a million behind each. */
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
