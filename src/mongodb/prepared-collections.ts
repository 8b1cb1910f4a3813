import { type Db, MongoServerError } from 'mongodb';
import { FuelError } from '../errors.ts';
import { type CollectionsPlan, prepareCollections } from './collections.ts';
import type { MongoConnection } from './connection.ts';
import { inTime } from './in-time.ts';

const PREPARED_WITHIN_MS = 10_000;
/** What the server says of a document whose key another one has. */
export const DUPLICATE_KEY = 11_000;
/** An upsert that loses a race finds the winner's document with its next try. */
const MAX_TRIES = 5;

/**
 * The collections of one adapter: made with the first use, and each use limited in time. The connection is its
 * owner's; closing this leaves it open.
 */
export class PreparedCollections {
  readonly #connection: MongoConnection;
  readonly #plan: CollectionsPlan;
  #prepared: Promise<void> | undefined;
  #closed = false;

  constructor(connection: MongoConnection, plan: CollectionsPlan) {
    this.#connection = connection;
    this.#plan = plan;
  }

  /**
   * Runs operations on the database. Rejects with `STORE_UNAVAILABLE` where no server takes them or the answer is
   * not there within `withinMs`: the driver has no limit of its own for a server that took an operation and says
   * nothing. What was asked may still happen then. Rejects with `STORE_CLOSED` after `close`.
   */
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
    this.#prepared ??= inTime(PREPARED_WITHIN_MS, () =>
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

/** Tries an upsert again that another process's upsert of the same document came before. */
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
