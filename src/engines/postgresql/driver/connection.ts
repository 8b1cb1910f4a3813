import pg, { type PoolClient } from 'pg';
import { FuelError } from '../../../base/errors.ts';
import { inTime } from '../../tables/server-store.ts';
import { toKnownError, whileConnecting } from './errors.ts';
import { type Run, Session } from './session.ts';
import { type Limits, sessionConfig } from './settings.ts';
import { types } from './values.ts';

export const TITLE = 'PostgreSQL';
/** The limit for getting a connection. It is short, so that a page request is answered within 2 s in any case. */
const CONNECT_MS = 1_200;
const ANSWER_MS = 1_500;
/** The default limit for one thread. A process with all roles uses about six connections. */
const MAX_CONNECTIONS = 10;
const IDLE_MS = 30_000;
/** How often work that conflicts with another transaction is tried. The second try usually succeeds. */
const MAX_TRIES = 5;
export interface PostgresOptions {
  /** `postgres://…` or `postgresql://…`, with credentials and TLS. */
  readonly url: string;
  /** The schema of the tables. */
  readonly schema: string;
  /** How many connections there may be at once, by default 10. */
  readonly maxConnections?: number;
}

/** The connections of one thread, which the adapters share. Each is made when it is first needed, and has no state. */
export class PostgresConnection {
  readonly schema: string;
  readonly #pool: pg.Pool;
  readonly #busy = new Set<PoolClient>();
  #isClosed = false;

  /** Throws `CONFIG_INVALID` for a connection string that the driver does not accept. It does not connect. */
  constructor({ url, schema, maxConnections = MAX_CONNECTIONS }: PostgresOptions) {
    this.schema = schema;
    this.#pool = new pg.Pool({
      application_name: 'fuel',
      ...sessionConfig(url),
      types,
      keepAlive: true,
      max: maxConnections,
      connectionTimeoutMillis: CONNECT_MS,
      idleTimeoutMillis: IDLE_MS,
    });
    this.#pool.on('error', () => undefined); // an idle connection was cut, and the next use makes another one
    this.#pool.on('connect', (client) => client.on('error', () => undefined)); // the statement rejects anyway
  }

  /**
   * Runs statements on one connection. Rejects with `STORE_UNAVAILABLE` if no server has done them within `withinMs`,
   * `STORE_CLOSED` after `close`, `ITEM_REFUSED` for values that can't be stored, `CONFIG_INVALID` for what only the
   * operator can change, and otherwise with the driver's own errors. Work that met a conflict, or a limit of a session
   * that does not have our settings, is done again in a transaction that has them.
   */
  use<T>(withinMs: number, work: (run: Run) => Promise<T>): Promise<T> {
    return this.#repeated(withinMs, (session, isAgain) =>
      isAgain ? session.transaction({ withinMs }, work) : work(session.run),
    );
  }

  /** Runs statements like `use`, but commits them together, or none if the work rejects. */
  transaction<T>(limits: Limits, work: (run: Run) => Promise<T>): Promise<T> {
    return this.#repeated(limits.withinMs, (session) => session.transaction(limits, work));
  }

  /** Resolves when the server answers and takes transactions that write, within 2 s either way. */
  async ping(): Promise<void> {
    const sql = `SELECT current_setting('transaction_read_only') AS read_only`;
    const [answer] = await this.transaction({ withinMs: ANSWER_MS }, (run) => run({ sql }));
    if (answer?.read_only !== 'off') throw noWrites();
  }

  /** Returns the version of the server. Rejects like `use`. */
  async describe(): Promise<{ readonly version: string }> {
    const sql = `SELECT current_setting('server_version') AS version`;
    const [{ version } = {}] = await this.use(ANSWER_MS, (run) => run({ sql }));
    return { version: String(version).split(' ')[0] ?? '' };
  }

  /** Ends the statements that are under way. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const client of this.#busy) cut(client);
    await this.#pool.end();
  }

  /** Once the time is over it cuts the connection, and the server ends the statement. */
  async #repeated<T>(
    withinMs: number,
    attempt: (session: Session, isAgain: boolean) => Promise<T>,
  ): Promise<T> {
    const over = new AbortController();
    try {
      return await inTime(TITLE, withinMs, this.#attempts(over.signal, attempt));
    } finally {
      over.abort();
    }
  }

  async #attempts<T>(
    over: AbortSignal,
    attempt: (session: Session, isAgain: boolean) => Promise<T>,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      if (this.#isClosed) throw closed();
      const client = await this.#connect();
      const session = new Session(client);
      const onOver = (): void => cut(client);
      over.addEventListener('abort', onOver);
      try {
        over.throwIfAborted(); // it may have taken the whole time to connect
        return await attempt(session, tries > 1);
      } catch (error) {
        if (this.#isClosed) throw closed(error);
        if (tries === MAX_TRIES || over.aborted || !session.canRepeatAfter(error)) throw toKnownError(error);
      } finally {
        over.removeEventListener('abort', onOver);
        this.#busy.delete(client);
        client.release(session.isBroken);
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

/** Ends the statement that is under way. */
function cut(client: PoolClient): void {
  void (client as unknown as pg.Client).end();
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
