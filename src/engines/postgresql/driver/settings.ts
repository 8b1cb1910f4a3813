import { type ClientConfig, escapeLiteral } from 'pg';
import { parseIntoClientConfig } from 'pg-connection-string';
import { refusedConnectionString } from '../../../base/errors.ts';

/**
 * The settings that a session relies on, which override the defaults of its role, database and server. PostgreSQL has no hints: the
 * first settings leave it no plan but the named index in its order. The next ones end a statement whose client is gone,
 * and nothing else ends one. The last ones say what a statement sees.
 */
const SESSION = [
  ...['seqscan', 'bitmapscan', 'sort', 'incremental_sort', 'hashjoin', 'mergejoin'].map(
    (way) => `enable_${way}=off`,
  ),
  'jit=off',
  'max_parallel_workers_per_gather=0',
  'client_connection_check_interval=1s',
  ...['statement', 'lock', 'idle_in_transaction_session', 'idle_session'].map((each) => `${each}_timeout=0`),
  'default_transaction_isolation=read\\ committed',
  'search_path=pg_catalog',
]
  .map((each) => `-c ${each}`)
  .join(' ');

/** The limits of one transaction. */
export interface Limits {
  /** The server ends a statement that takes longer. */
  readonly withinMs: number;
  /** How long a statement waits for a lock, by default `withinMs`. */
  readonly lockMs?: number;
}

/**
 * Begins a transaction that does not depend on the settings of its session: behind a pooler that gives each transaction
 * another connection, a session has those of its role. `transaction_timeout` exists since version 17.
 */
export function beginning({ withinMs, lockMs = withinMs }: Limits): string {
  const limits = {
    statement_timeout: withinMs,
    lock_timeout: lockMs,
    idle_in_transaction_session_timeout: withinMs,
    transaction_timeout: 0,
  };
  const values = Object.entries(limits).map(([name, ms]) => `(${escapeLiteral(name)}, '${ms}')`);
  return `BEGIN ISOLATION LEVEL READ COMMITTED;
    SELECT set_config(name, value, true) FROM (VALUES ${values.join(', ')}) AS own (name, value)
    WHERE current_setting(name, true) IS NOT NULL`;
}

/**
 * Parses the connection string like the driver, and adds the settings of a session. The operator's own options come last,
 * so that they prevail. Throws `CONFIG_INVALID` for a string that the driver does not accept.
 */
export function sessionConfig(url: string): ClientConfig {
  try {
    const { options = '', ...given } = parseIntoClientConfig(url);
    return { ...given, options: `${SESSION} ${options}`.trim() };
  } catch (error) {
    throw refusedConnectionString({ setting: 'POSTGRES_URL', url }, error);
  }
}
