import {
  BSON,
  type ClientSession,
  type Db,
  MongoClient,
  MongoError,
  MongoInvalidArgumentError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { FuelError, refusedConnectionString } from '../../../base/errors.ts';
import { orLate } from '../../../base/pause.ts';

/** To find a server for an operation; short, so that a page request is answered within 2 s in any case. */
const SELECTION_MS = 1_200;
/** To say whether a server answers: longer, so that it is told why none was found. */
const ANSWER_MS = 1_500;
/** A connection without an answer for this long is closed, and its operations fail. */
const SOCKET_MS = 30_000;
/**
 * For a find or an aggregation of which everything is wanted: it comes in batches of 16 MiB. Unless told otherwise MongoDB
 * puts 101 documents into the first, also where a limit is given, and every further one is a round trip.
 */
export const ONE_BATCH = 1_000_000;
/** Not primary, shutting down, stepping down, out of time, …: another server will take the operation, or soon this one. */
const UNAVAILABLE_CODES = new Set([
  6, 7, 43, 50, 64, 89, 91, 133, 134, 189, 262, 276, 9001, 10107, 11600, 11602, 13435, 13436,
]);
const UNAVAILABLE_LABELS = ['RetryableWriteError', 'TransientTransactionError', 'SystemOverloadedError'];
/** A document that is too large, also after an update, or that fails the collection's validation. */
const REFUSED_CODES = new Set([121, 10334, 17419, 17420]);
const UNAVAILABLE_NAMES = new Set([
  'MongoServerSelectionError',
  'MongoOperationTimeoutError',
  'MongoWaitQueueTimeoutError',
  'MongoTopologyClosedError',
  'MongoNotConnectedError',
  'MongoPoolClearedError',
]);
const SOCKET_CODES = new Set(['EPIPE', 'ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'ETIMEDOUT']);

export interface MongoConnectionOptions {
  /** `mongodb://…` or `mongodb+srv://…`; credentials, TLS and the replica set come from it. */
  readonly url: string;
  readonly database: string;
}

/** One client of the process, shared by the adapters. It connects with the first use. */
export class MongoConnection {
  readonly #client: MongoClient;
  readonly #db: Db;
  #connecting: Promise<void> | undefined;
  #isSingleNode = false;
  #closed = false;

  /** Throws `CONFIG_INVALID` for a connection string that the driver does not take; connects to nothing. */
  constructor({ url, database }: MongoConnectionOptions) {
    this.#client = newClient(url);
    this.#client.on('serverDescriptionChanged', ({ newDescription }) => {
      this.#isSingleNode = newDescription.type === 'Standalone';
    });
    this.#db = this.#client.db(database);
  }

  /** Operations inside `use` that take this session are done together; they may be called again after a conflict. */
  transaction<T>(work: (session: ClientSession) => Promise<T>): Promise<T> {
    return this.#client.withSession((session) => session.withTransaction(() => work(session)));
  }

  /**
   * Runs operations on the database. Rejects with `STORE_UNAVAILABLE` where no server takes them, `STORE_CLOSED`
   * after `close`, `ITEM_REFUSED` where a document can't be stored, `CONFIG_INVALID` where the server is a single
   * node, and with the driver's own errors otherwise.
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
   * Connects before the first operation. A client that connects as part of an operation, and finds no server, fails
   * ever after with "Topology is closed". Once connected, the driver reconnects by itself.
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

  /** The service needs transactions (0043), which a single node does not have. */
  async #connect(): Promise<void> {
    await this.#client.connect();
    if (this.#isSingleNode) throw singleNode();
  }

  /** Resolves when the server that takes writes answers, within 2 s either way. */
  async ping(): Promise<void> {
    const hello = await inTime(ANSWER_MS, () => this.use((db) => db.command({ hello: 1 })));
    if (hello.isreplicaset === true) throw notInitiated();
    if (hello.isWritablePrimary !== true) throw noWrites();
  }

  /** Version and clock of the server that takes writes. Rejects as `ping`. */
  async describe(): Promise<{ readonly version: string; readonly clockMs: number }> {
    return inTime(SELECTION_MS, () =>
      this.use(async (db) => {
        const { version } = await db.command({ buildInfo: 1 });
        const { localTime } = await db.command({ hello: 1 });
        return { version: String(version), clockMs: (localTime as Date).getTime() };
      }),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client.close();
  }
}

/** Classifies an error of the driver for `errorKind`: unavailable, refused, or the error itself. */
function toKnownError(error: unknown): unknown {
  if (isUnavailable(error)) return unavailable(error as Error);
  if (isRefused(error)) {
    const { message } = error as Error;
    return new FuelError('ITEM_REFUSED', `MongoDB does not take it: ${message}`, { cause: error });
  }
  return error;
}

function isRefused(error: unknown): boolean {
  if (BSON.BSONError.isBSONError(error) || error instanceof MongoInvalidArgumentError) return true;
  // A document that does not fit into the driver's buffer.
  if (error instanceof RangeError && (error as NodeJS.ErrnoException).code === 'ERR_OUT_OF_RANGE')
    return true;
  return error instanceof MongoServerError && REFUSED_CODES.has(Number(error.code));
}

function isUnavailable(error: unknown): boolean {
  // The driver does not wrap every socket error, such as a write to a socket that the server has just closed.
  if (!(error instanceof MongoError)) return SOCKET_CODES.has(String((error as { code?: unknown }).code));
  if (error instanceof MongoNetworkError || UNAVAILABLE_NAMES.has(error.name)) return true;
  if (UNAVAILABLE_LABELS.some((label) => error.hasErrorLabel(label))) return true;
  if (error instanceof MongoServerError) {
    if (UNAVAILABLE_CODES.has(Number(error.code))) return true;
    const within: unknown = error.errorResponse; // a bulk write wraps an error of its connection in one of the server
    if (within instanceof Error && isUnavailable(within)) return true;
  }
  return error.cause !== undefined && isUnavailable(error.cause);
}

function unavailable(cause: Error): FuelError {
  if (cause instanceof MongoServerSelectionError && isWithoutConfig(cause.reason)) return notInitiated(cause);
  return new FuelError('STORE_UNAVAILABLE', `MongoDB can not be reached: ${cause.message}`, { cause });
}

function isWithoutConfig(topology: MongoServerSelectionError['reason']): boolean {
  const servers = [...(topology?.servers?.values() ?? [])];
  return servers.length > 0 && servers.every(({ type }) => type === 'RSGhost');
}

function notInitiated(cause?: Error): FuelError {
  const remedy = 'run rs.initiate() once in mongosh';
  const message = `MongoDB answers, and its replica set was not initiated: ${remedy}`;
  return new FuelError('STORE_UNAVAILABLE', message, { cause, remedy });
}

/** Of a connection that names one member. */
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

/**
 * Rejects with `STORE_UNAVAILABLE` where the work takes longer than `withinMs`; it may still happen then. The driver has
 * no time-out of its own for a server that has received an operation and does not answer.
 */
export async function inTime<T>(withinMs: number, work: () => Promise<T>): Promise<T> {
  return orLate(work(), withinMs, () => {
    throw new FuelError('STORE_UNAVAILABLE', `MongoDB has not answered within ${withinMs} ms`);
  });
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
