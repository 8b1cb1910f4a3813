import type { Db, IndexDescription } from 'mongodb';
import { FuelError } from '../errors.ts';

/** What an adapter keeps: its collections with their indexes, under a version of their own. */
export interface CollectionsPlan {
  /** Names the plan in the collection `schema_versions`. */
  readonly name: string;
  readonly version: number;
  readonly collections: Readonly<Record<string, readonly IndexDescription[]>>;
}

const VERSIONS = 'schema_versions';

/**
 * Makes the collections and indexes that are missing; safe when several processes do so at once. Rejects with
 * `STORE_NEWER` where a newer version of this service wrote them.
 */
export async function prepareCollections(db: Db, plan: CollectionsPlan): Promise<void> {
  const versions = db.collection<{ _id: string; version: number }>(VERSIONS);
  const found = await versions.findOneAndUpdate(
    { _id: plan.name },
    { $max: { version: plan.version } },
    { upsert: true, returnDocument: 'before' },
  );
  if (found !== null && found.version > plan.version) {
    throw new FuelError(
      'STORE_NEWER',
      `the collections of ${plan.name} in MongoDB have version ${found.version}, newer than ${plan.version}, ` +
        'which this version of the service writes: run the newer version',
    );
  }
  for (const [name, indexes] of Object.entries(plan.collections)) {
    if (indexes.length > 0) await db.collection(name).createIndexes([...indexes]);
  }
}
