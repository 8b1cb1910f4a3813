import {
  type Collection,
  type Db,
  type IndexDescription,
  MongoBulkWriteError,
  MongoServerError,
} from 'mongodb';
import { FuelError } from '../../../base/errors.ts';
import { inTime, type MongoConnection } from './connection.ts';

const PREPARE_TIMEOUT_MS = 10_000;
/** The server's error code. */
const DUPLICATE_KEY = 11_000;
/** An upsert that loses a race finds the winner's document with its next try. */
const MAX_TRIES = 5;

/** The collections of one adapter, their indexes and their version. */
export interface CollectionsPlan {
  /** Names the plan in the collection `schema_versions`. */
  readonly name: string;
  /** Raised when documents or indexes change. What changes the documents that are there is done in `prepareCollections`. */
  readonly version: number;
  readonly collections: Readonly<Record<string, readonly IndexDescription[]>>;
}

interface VersionDocument {
  readonly _id: string;
  /** The version of which everything is there. */
  readonly version: number;
}

/** The collections of one adapter, created with the first use. Closing them leaves the connection open. */
export class PreparedCollections {
  readonly #connection: MongoConnection;
  readonly #plan: CollectionsPlan;
  #prepared: Promise<void> | undefined;
  #closed = false;

  constructor(connection: MongoConnection, plan: CollectionsPlan) {
    this.#connection = connection;
    this.#plan = plan;
  }

  /** As `MongoConnection.use`, limited by `inTime`. Rejects with `STORE_CLOSED` after `close`. */
  async use<T>(withinMs: number, work: (db: Db) => Promise<T>): Promise<T> {
    if (this.#closed)
      throw new FuelError('STORE_CLOSED', `the collections of ${this.#plan.name} were closed`);
    return inTime(withinMs, async () => {
      await this.#prepare();
      return this.#connection.use(work);
    });
  }

  close(): void {
    this.#closed = true;
  }

  async #prepare(): Promise<void> {
    this.#prepared ??= inTime(PREPARE_TIMEOUT_MS, () =>
      this.#connection.use((db) => prepareCollections(db, this.#plan)),
    );
    try {
      await this.#prepared;
    } catch (error) {
      this.#prepared = undefined;
      throw error;
    }
  }
}

/**
 * Creates the collections and indexes that are missing, unless this version has done so; safe when several processes do so at
 * once. Rejects with `STORE_NEWER` where a newer version of this service wrote them.
 */
export async function prepareCollections(db: Db, plan: CollectionsPlan): Promise<void> {
  const found = await readVersion(db, plan);
  if (found !== null && found.version > plan.version) {
    throw new FuelError(
      'STORE_NEWER',
      `the collections of ${plan.name} in MongoDB have version ${found.version}, newer than ${plan.version}, ` +
        'which this version of the service writes: run the newer version',
    );
  }
  if (found?.version === plan.version) return;
  for (const [name, indexes] of Object.entries(plan.collections)) {
    if (indexes.length > 0) await db.collection(name).createIndexes([...indexes]);
  }
  const { name: _id, version } = plan;
  await retryUpsert(() => versionsIn(db).updateOne({ _id }, { $max: { version } }, { upsert: true }));
}

/** Whether these collections were ever prepared; `current` where they have this version, or a newer one. */
export async function preparedState(
  connection: MongoConnection,
  plan: Pick<CollectionsPlan, 'name' | 'version'>,
): Promise<'missing' | 'of another version' | 'current'> {
  const found = await inTime(PREPARE_TIMEOUT_MS, () => connection.use((db) => readVersion(db, plan)));
  if (found === null) return 'missing';
  return found.version >= plan.version ? 'current' : 'of another version';
}

/** As a majority has it, so that the indexes outlast a failover too. */
function readVersion(db: Db, { name }: Pick<CollectionsPlan, 'name'>): Promise<VersionDocument | null> {
  return versionsIn(db).findOne({ _id: name }, { readConcern: 'majority' });
}

function versionsIn(db: Db): Collection<VersionDocument> {
  return db.collection('schema_versions');
}

/** Retries an upsert that failed because another process inserted the same document. */
export async function retryUpsert<T>(upsert: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await upsert();
    } catch (error) {
      if (!isDuplicateKey(error) || tries === MAX_TRIES) throw error;
    }
  }
}

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
}

/** Where the server does not say. */
const UNKNOWN_ERROR = 8;

/**
 * The places of the writes of an unordered bulk write that found their id existing, where nothing else failed. Throws the
 * server's own error for any other failure, so that a temporary one can be told from a permanent one.
 */
export function duplicatesIn(error: unknown): readonly number[] {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const failures = [error.writeErrors].flat();
  const other = failures.find(({ code }) => code !== DUPLICATE_KEY) ?? error.result.getWriteConcernError();
  if (other !== undefined) {
    const { errmsg: message = error.message, code = UNKNOWN_ERROR } = other;
    throw new MongoServerError({ message, code });
  }
  if (failures.length === 0) throw error; // of the connection: what was written is not known
  return failures.map(({ index }) => index);
}
