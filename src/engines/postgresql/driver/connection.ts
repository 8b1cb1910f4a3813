import pg, { type PoolClient } from 'pg';
import { FuelError, refusedConnectionString } from '../../../base/errors.ts';
import type { AnyRow } from '../../../tables/plan.ts';
import { inTime } from '../../tables/server-store.ts';
import { isConflict, isOfConnection, toKnownError, whileConnecting } from './errors.ts';
import { Notifications } from './notifications.ts';
import { types } from './values.ts';

export const TITLE = 'PostgreSQL';
/** The limit for getting a connection. It is short, so that a page request is answered within 2 s in any case. */
const CONNECT_MS = 1_200;
const ANSWER_MS = 1_500;
/** The limit for one thread. A process with all roles uses about six connections. */
const MAX_CONNECTIONS = 10;
const IDLE_MS = 30_000;
/** How often work that conflicts with another transaction is tried. The second try usually succeeds. */
const MAX_TRIES = 5;
/**
 * PostgreSQL has no hints. The first settings leave it no plan but the named index in its order. The others end a
 * statement whose client is gone, and make the server write values as the driver reads them.
 */
const SETTINGS = [
  ...['seqscan', 'bitmapscan', 'sort', 'incremental_sort', 'hashjoin', 'mergejoin'].map(
    (way) => `enable_${way}=off`,
  ),
  ...['jit=off', 'max_parallel_workers_per_gather=0', 'client_connection_check_interval=1s'],
  ...['datestyle=ISO', 'timezone=UTC', 'bytea_output=hex', 'extra_float_digits=1'],
]
  .map((each) => `-c ${each}`)
  .join(' ');

export interface PostgresOptions {
  /** `postgres://…` or `postgresql://…`, with credentials and TLS. */
  readonly url: string;
  /** The schema of the tables. */
  readonly schema: string;
}

export interface Sql {
  readonly sql: string;
  readonly values?: readonly unknown[];
}

/** Runs one statement, and returns its rows. */
export type Run = (statement: Sql) => Promise<AnyRow[]>;

/** The connections of one thread, which the adapters share. Each is made when it is first needed, and has no state. */
export class PostgresConnection {
  readonly schema: string;
  readonly notifications: Notifications;
  readonly #pool: pg.Pool;
  readonly #busy = new Set<PoolClient>();
  #isClosed = false;

  /** Throws `CONFIG_INVALID` for a connection string that the driver does not accept. It does not connect. */
  constructor({ url, schema }: PostgresOptions) {
    this.schema = schema;
    const config = {
      ...{ connectionString: withSettings(url), application_name: 'fuel', types, keepAlive: true },
      ...{ max: MAX_CONNECTIONS, connectionTimeoutMillis: CONNECT_MS, idleTimeoutMillis: IDLE_MS },
    };
    assertTaken(url, config);
    this.#pool = new pg.Pool(config);
    this.#pool.on('error', () => undefined); // an idle connection was cut, and the next use makes another one
    this.#pool.on('connect', (client) => client.on('error', () => undefined)); // the statement rejects anyway
    this.notifications = new Notifications(config, schema);
  }

  /**
   * Runs statements on one connection. Rejects with `STORE_UNAVAILABLE` if no server has done them within `withinMs`,
   * `STORE_CLOSED` after `close`, `ITEM_REFUSED` for values that can't be stored, `CONFIG_INVALID` for what only the
   * operator can change, and otherwise with the driver's own errors. After a conflict it does the work again.
   */
  async use<T>(withinMs: number, work: (run: Run) => Promise<T>): Promise<T> {
    return inTime(TITLE, withinMs, this.#use(withinMs, work));
  }

  /** Runs statements like `use`, but commits them together, or none if the work rejects. */
  transaction<T>(withinMs: number, work: (run: Run) => Promise<T>): Promise<T> {
    return this.use(withinMs, async (run) => {
      await run({ sql: 'BEGIN' });
      try {
        const result = await work(run);
        await run({ sql: 'COMMIT' });
        return result;
      } catch (error) {
        await run({ sql: 'ROLLBACK' }).catch(() => undefined); // if the connection is cut, the server rolls back itself
        throw error;
      }
    });
  }

  /** Resolves when the server answers and takes writes, within 2 s either way. */
  async ping(): Promise<void> {
    const sql = `SELECT current_setting('transaction_read_only') AS read_only`;
    const [answer] = await this.use(ANSWER_MS, (run) => run({ sql }));
    if (answer?.read_only !== 'off') throw noWrites();
  }

  /** Returns the version and the clock of the server. Rejects like `use`. */
  async describe(): Promise<{ readonly version: string; readonly clockMs: number }> {
    const sql = `SELECT current_setting('server_version') AS version, clock_timestamp() AS now`;
    const [{ version, now } = {}] = await this.use(ANSWER_MS, (run) => run({ sql }));
    return { version: String(version).split(' ')[0] ?? '', clockMs: Number(now) };
  }

  /** Ends the statements that are under way. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.notifications.close();
    for (const client of this.#busy) void (client as unknown as pg.Client).end();
    await this.#pool.end();
  }

  async #use<T>(withinMs: number, work: (run: Run) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      if (this.#isClosed) throw closed();
      const client = await this.#connect();
      let isBroken = false;
      const run: Run = async ({ sql: text, values = [] }) => {
        try {
          const statement = { text, values: [...values], query_timeout: withinMs };
          return (await client.query<AnyRow>(statement)).rows;
        } catch (error) {
          isBroken ||= isOfConnection(error);
          throw error;
        }
      };
      try {
        return await work(run);
      } catch (error) {
        if (this.#isClosed) throw closed(error);
        if (!isConflict(error) || tries === MAX_TRIES) throw toKnownError(error);
      } finally {
        this.#busy.delete(client);
        client.release(isBroken);
      }
    }
  }

  async #connect(): Promise<PoolClient> {
    try {
      const client = await this.#pool.connect();
      this.#busy.add(client);
      return client;
    } catch (error) {
      throw this.#isClosed ? closed(error) : whileConnecting(error);
    }
  }
}

/** Adds the settings to the connection string. The operator's own options come last, so that they prevail. */
function withSettings(url: string): string {
  const [, given = ''] = /[?&]options=([^&]*)/.exec(url) ?? [];
  return `${url}${url.includes('?') ? '&' : '?'}options=${encodeURIComponent(SETTINGS)}%20${given}`;
}

function assertTaken(url: string, config: pg.ClientConfig): void {
  try {
    new pg.Client(config);
  } catch (error) {
    throw refusedConnectionString({ setting: 'POSTGRES_URL', url }, error);
  }
}

function noWrites(): FuelError {
  const remedy = 'name the primary in POSTGRES_URL, or an address that follows it';
  const message =
    'PostgreSQL answers, and takes no writes: POSTGRES_URL leads to a standby, or to one that is read-only';
  return new FuelError('STORE_UNAVAILABLE', message, { remedy });
}

function closed(cause?: unknown): FuelError {
  return new FuelError('STORE_CLOSED', 'the connections to PostgreSQL were closed', { cause });
}
