import type { PoolClient, QueryConfig } from 'pg';
import type { AnyRow } from '../../../tables/plan.ts';
import { isConflict, isOfConnection, isOfLimit } from './errors.ts';
import { beginning, type Limits } from './settings.ts';

export interface Sql {
  readonly sql: string;
  readonly values?: readonly unknown[];
}

/** Runs one statement, and returns its rows. */
export type Run = (statement: Sql) => Promise<AnyRow[]>;

/** One use of a connection. */
export class Session {
  /** True if the connection can't be used for another statement. */
  isBroken = false;
  readonly #client: PoolClient;
  #isInTransaction = false;
  /** True if a statement was done outside of a transaction, so that the work can't be repeated. */
  #isDone = false;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  readonly run: Run = async ({ sql: text, values = [] }) => {
    const { rows } = await this.#ask<AnyRow>({ text, values: [...values] });
    this.#isDone ||= !this.#isInTransaction;
    return rows;
  };

  /** Commits the statements of the work together, or none if it rejects. */
  async transaction<T>(limits: Limits, work: (run: Run) => Promise<T>): Promise<T> {
    this.#isInTransaction = true;
    await this.#ask({ text: beginning(limits) });
    try {
      const result = await work(this.run);
      await this.#ask({ text: 'COMMIT' });
      return result;
    } catch (error) {
      await this.#ask({ text: 'ROLLBACK' }).catch(() => undefined); // if the connection is cut, the server rolls back itself
      throw error;
    }
  }

  /**
   * True if the work has left nothing, and failed because of a conflict with another transaction, or of a limit that is
   * not its own but the session's.
   */
  canRepeatAfter(error: unknown): boolean {
    if (this.#isInTransaction) return isConflict(error);
    return !this.#isDone && (isConflict(error) || isOfLimit(error));
  }

  async #ask<T extends AnyRow>(statement: QueryConfig) {
    try {
      return await this.#client.query<T>(statement);
    } catch (error) {
      this.isBroken ||= isOfConnection(error);
      throw error;
    }
  }
}
