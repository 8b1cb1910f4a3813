import type { Collection, Db, IndexDescription } from 'mongodb';
import { inTime, PREPARE_MS, ServerStore, type StoreVersion } from '../../tables/server-store.ts';
import { type MongoConnection, TITLE } from './connection.ts';
import { isDuplicateKey } from './errors.ts';

/** An upsert that loses a race finds the winner's document in its next try. */
const MAX_TRIES = 5;

/** The collections of one adapter, with their indexes. */
export interface CollectionsPlan extends StoreVersion {
  readonly collections: Readonly<Record<string, readonly IndexDescription[]>>;
}

interface VersionDocument {
  readonly _id: string;
  /** The version of which everything exists. */
  readonly version: number;
}

/** Returns the collections of an adapter, which are made with their first use. */
export function collectionsOf(connection: MongoConnection, plan: CollectionsPlan): ServerStore {
  return new ServerStore(plan, {
    title: TITLE,
    versionOf: (name) => versionOf(connection, name),
    make: () => connection.use((db) => createCollections(db, plan)),
  });
}

/** Returns the version as a majority has it, so that the indexes survive a failover too. */
export async function versionOf(connection: MongoConnection, name: string): Promise<number | undefined> {
  const read = connection.use((db) => versionsIn(db).findOne({ _id: name }, { readConcern: 'majority' }));
  return (await inTime(TITLE, PREPARE_MS, read))?.version;
}

async function createCollections(
  db: Db,
  { name: _id, version, collections }: CollectionsPlan,
): Promise<void> {
  for (const [name, indexes] of Object.entries(collections)) {
    if (indexes.length > 0) await db.collection(name).createIndexes([...indexes]);
  }
  await retryUpsert(() => versionsIn(db).updateOne({ _id }, { $max: { version } }, { upsert: true }));
}

export function versionsIn(db: Db): Collection<VersionDocument> {
  return db.collection('schema_versions');
}

/** Retries an upsert that failed because another process has inserted the same document. */
export async function retryUpsert<T>(upsert: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await upsert();
    } catch (error) {
      if (!isDuplicateKey(error) || tries === MAX_TRIES) throw error;
    }
  }
}
