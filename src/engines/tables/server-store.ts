import { FuelError } from '../../base/errors.ts';
import { orLate } from '../../base/pause.ts';

/** The limit for making what a store needs, or for waiting until another process has made it. */
export const PREPARE_MS = 10_000;

/** The tables of one adapter: the name under which a server keeps their version. */
export interface StoreVersion {
  readonly name: string;
  /** Raised when tables or indexes are added. */
  readonly version: number;
}

/** How a server makes the tables of one adapter. */
export interface StoreServer {
  /** The server's name in error messages. */
  readonly title: string;
  /** Returns the version of the tables that exist; `undefined` if there are none. */
  versionOf(name: string): Promise<number | undefined>;
  /** Makes what is missing and records the version. It must be safe if several processes do so at once. */
  make(): Promise<void>;
  /** Says whether an error means that another process has dropped the tables. */
  readonly isOfMissing?: (error: unknown) => boolean;
}

/** The tables of one adapter on a server, made with the first use. Closing them leaves the connection open. */
export class ServerStore {
  readonly #plan: StoreVersion;
  readonly #server: StoreServer;
  #prepared: Promise<void> | undefined;
  #isClosed = false;

  constructor(plan: StoreVersion, server: StoreServer) {
    this.#plan = plan;
    this.#server = server;
  }

  /**
   * Does the work once the tables exist, and once more if another process has dropped them. Rejects with
   * `STORE_CLOSED` after `close`, `STORE_NEWER` if a newer version of this service has written the tables, and as
   * `inTime`.
   */
  async use<T>(withinMs: number, work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new FuelError('STORE_CLOSED', `the tables of ${this.#plan.name} were closed`);
    return inTime(this.#server.title, withinMs, this.#use(work));
  }

  close(): void {
    this.#isClosed = true;
  }

  async #use<T>(work: () => Promise<T>): Promise<T> {
    await this.#ready();
    try {
      return await work();
    } catch (error) {
      if (this.#server.isOfMissing?.(error) !== true) throw error;
      this.#prepared = undefined;
      await this.#ready();
      return work();
    }
  }

  async #ready(): Promise<void> {
    this.#prepared ??= inTime(this.#server.title, PREPARE_MS, this.#prepare());
    try {
      await this.#prepared;
    } catch (error) {
      this.#prepared = undefined;
      throw error;
    }
  }

  async #prepare(): Promise<void> {
    const { name, version } = this.#plan;
    let found = await this.#server.versionOf(name);
    if (found === undefined || found < version) {
      await this.#server.make();
      found = await this.#server.versionOf(name); // a newer process may have made them at the same time
    }
    if (found === undefined || found <= version) return;
    throw new FuelError(
      'STORE_NEWER',
      `the tables of ${name} in ${this.#server.title} have version ${found}, newer than ${version}, ` +
        'which this version of the service writes. Run the newer version',
    );
  }
}

/** Says what a store needs whose tables have the version `found`. Those of a newer version need nothing. */
export function stateOfVersion(
  found: number | undefined,
  { version }: StoreVersion,
): 'missing' | 'of another version' | 'current' {
  if (found === undefined) return 'missing';
  return found >= version ? 'current' : 'of another version';
}

/** Rejects with `STORE_UNAVAILABLE` if the work takes longer than `withinMs`. The work may still happen then. */
export function inTime<T>(title: string, withinMs: number, work: Promise<T>): Promise<T> {
  return orLate(work, withinMs, () => {
    throw new FuelError('STORE_UNAVAILABLE', `${title} has not answered within ${withinMs} ms`);
  });
}
