import { onTestFinished } from 'vitest';
import { freshDatabase, mongodbUrl } from '../engines/mongodb.ts';
import { startEventStoreDbDouble } from '../event-store/eventstoredb-double/eventstoredb-double.ts';
import { commandLine } from './command-line.ts';

/** The command line on a double of EventStoreDB and a database of MongoDB, where there is no data directory. */
export async function commandLineOnEngines() {
  const double = await startEventStoreDbDouble();
  onTestFinished(() => double.stop());
  const env = {
    EVENTSTORE_URL: double.url,
    MONGODB_URL: mongodbUrl(),
    MONGODB_DATABASE: freshDatabase(),
    FUEL_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  };
  return { ...commandLine(env, { hasStore: false }), url: double.url };
}
