import { type ClientSession, type Db, MongoClient } from 'mongodb';
import { FuelError, refusedConnectionString } from '../../../base/errors.ts';
import { inTime } from '../../tables/server-store.ts';
import { notInitiated, toKnownError } from './errors.ts';

export const TITLE = 'MongoDB';
/** The limit for finding a server. It is short, so that a page request is answered within 2 s in any case. */
const SELECTION_MS = 1_200;
/** The limit for a ping. It is longer, so that the driver can say why it found no server. */
const ANSWER_MS = 1_500;
/** A connection that has got no answer for this long is closed, and its operations fail. */
const SOCKET_MS = 30_000;
/**
 * The batch size of a find or an aggregation that reads everything, so that its batches are limited by their 16 MiB
 * alone. By default MongoDB puts only 101 documents into the first batch, whatever the limit, and each further batch is
 * a round trip.
 */
export const ONE_BATCH = 1_000_000;

export interface MongoConnectionOptions {
  /** `mongodb://…` or `mongodb+srv://…`, with credentials, TLS and the replica set. */
  readonly url: string;
  readonly database: string;
}

/** The client of the process, which the adapters share. It connects with the first use. */
export class MongoConnection {
  readonly #client: MongoClient;
  readonly #db: Db;
  #connecting: Promise<void> | undefined;
  #isSingleNode = false;
  #closed = false;

  /** Throws `CONFIG_INVALID` for a connection string that the driver does not accept. It does not connect. */
  constructor({ url, database }: MongoConnectionOptions) {
    this.#client = newClient(url);
    this.#client.on('serverDescriptionChanged', ({ newDescription }) => {
      this.#isSingleNode = newDescription.type === 'Standalone';
    });
    this.#db = this.#client.db(database);
  }

  /**
   * Commits the operations that get this session together. It is called inside `use`, and may call `work` again after a
   * conflict.
   */
  transaction<T>(work: (session: ClientSession) => Promise<T>): Promise<T> {
    return this.#client.withSession((session) => session.withTransaction(() => work(session)));
  }

  /**
   * Runs operations on the database. Rejects with `STORE_UNAVAILABLE` if no server takes them, `STORE_CLOSED` after
   * `close`, `ITEM_REFUSED` if a document can't be stored, `CONFIG_INVALID` if the server is a single node, and
   * otherwise with the driver's own errors.
   */
  async use<T>(work: (db: Db) => Promise<T>): Promise<T> {
    if (this.#closed) throw closed();
    try {
      await this.#connected();
      return await work(this.#db);
    } catch (error) {
      if (this.#closed) throw closed(error);
      throw toKnownError(error);
    }
  }

  /**
   * Connects before the first operation. If a client connects as part of an operation and finds no server, all its later
   * operations fail with "Topology is closed". Once connected, the driver reconnects by itself.
   */
  async #connected(): Promise<void> {
    this.#connecting ??= this.#connect();
    try {
      await this.#connecting;
    } catch (error) {
      this.#connecting = undefined;
      throw error;
    }
  }

  /** Refuses a single node, which has no transactions (0043). */
  async #connect(): Promise<void> {
    await this.#client.connect();
    if (this.#isSingleNode) throw singleNode();
  }

  /** Resolves when the server that takes writes answers, within 2 s either way. */
  async ping(): Promise<void> {
    const asking = this.use((db) => db.command({ hello: 1 }));
    const hello = await inTime(TITLE, ANSWER_MS, asking);
    if (hello.isreplicaset === true) throw notInitiated();
    if (hello.isWritablePrimary !== true) throw noWrites();
  }

  /** Returns the version of the server that takes writes. Rejects like `ping`. */
  async describe(): Promise<{ readonly version: string }> {
    const describing = this.use(async (db) => {
      const { version } = await db.command({ buildInfo: 1 });
      return { version: String(version) };
    });
    return inTime(TITLE, SELECTION_MS, describing);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client.close();
  }
}

function noWrites(): FuelError {
  const message =
    'MongoDB answers, and takes no writes: MONGODB_URL leads to a member that is not the primary';
  const remedy =
    'leave directConnection out of MONGODB_URL and name the replica set in it (replicaSet=…), so that the primary is found';
  return new FuelError('STORE_UNAVAILABLE', message, { remedy });
}

function singleNode(): FuelError {
  return new FuelError(
    'CONFIG_INVALID',
    'MONGODB_URL names a single node, and the service needs a replica set (one member is enough) or a sharded ' +
      'cluster: start mongod with --replSet rs0, then run rs.initiate() once in mongosh',
  );
}

function closed(cause?: unknown): FuelError {
  return new FuelError('STORE_CLOSED', 'the connection to MongoDB was closed', { cause });
}

function newClient(url: string): MongoClient {
  try {
    return new MongoClient(url, {
      appName: 'fuel',
      serverSelectionTimeoutMS: SELECTION_MS,
      connectTimeoutMS: SELECTION_MS,
      socketTimeoutMS: SOCKET_MS,
      waitQueueTimeoutMS: SELECTION_MS,
      writeConcern: { w: 'majority' }, // acknowledged writes survive a failover
      ignoreUndefined: true,
    });
  } catch (error) {
    throw refusedConnectionString({ setting: 'MONGODB_URL', url }, error);
  }
}
