import { DatabaseError } from 'pg';
import { errorKind, FuelError } from '../../../base/errors.ts';

/**
 * SQLSTATEs, or their first characters, after which another server, or this one later, takes the same statement: a
 * failed connection, missing resources, an operator's intervention, a system error, a standby, a lock.
 */
const UNAVAILABLE = ['08', '53', '57', '58', '25006', '25P0', '40001', '40P01', '55P03'];
/** SQLSTATEs for values that can't be stored: data exception, integrity violation, program limit exceeded. */
const REFUSED = ['22', '23', '54'];
/** SQLSTATEs for what only the operator can change: the password, the database, the privileges. */
const SETTINGS = ['28', '3D000', '42501'];
/** SQLSTATEs for a conflict with another transaction, which has ended by then. */
const CONFLICT = ['40001', '40P01'];
/** SQLSTATEs for a limit of the session: a statement, a lock, or a transaction took too long. */
const LIMIT = ['57014', '55P03', '25P04'];
/** The driver's messages for a broken connection. These errors have no code. */
const CUT =
  /^(?:Connection terminated|timeout exceeded when|Client (?:has encountered|was closed)|Query read timeout|Cannot use a pool)/;

/** The errors of a PgBouncer whose settings do not suit this service, or that does not accept the user, and what to set. */
const MISSET = [
  {
    said: /unsupported startup parameter/,
    remedy: 'set ignore_startup_parameters = options in pgbouncer.ini',
  },
  { said: /statement pooling mode/, remedy: 'set pool_mode = transaction in pgbouncer.ini' },
  {
    said: /^SASL authentication failed$/,
    remedy:
      'name a user and a password that are in the auth_file of pgbouncer.ini, or that its auth_query finds',
  },
];

/** True if there is no such schema, or no such table in it. */
export function isOfMissing(error: unknown): boolean {
  return error instanceof DatabaseError && has(error, ['3F000', '42P01']);
}

export function isConflict(error: unknown): boolean {
  return error instanceof DatabaseError && has(error, CONFLICT);
}

export function isOfLimit(error: unknown): boolean {
  return error instanceof DatabaseError && has(error, LIMIT);
}

/** True if the connection can't be used for another statement, or may still be running one. */
export function isOfConnection(error: unknown): boolean {
  return !(error instanceof DatabaseError) || has(error, ['08', '57P', '25P03', '25P04']);
}

/** Classifies an error of the driver for `errorKind`: unavailable, refused, or the error itself. */
export function toKnownError(error: unknown): unknown {
  if (!(error instanceof DatabaseError)) return isCut(error) ? unavailable(error as Error) : error;
  const misset = MISSET.find(({ said }) => said.test(error.message));
  if (misset !== undefined) return invalid(error, misset.remedy);
  if (has(error, UNAVAILABLE)) return unavailable(error);
  const said = { cause: error };
  if (has(error, REFUSED))
    return new FuelError('ITEM_REFUSED', `PostgreSQL refuses an item: ${error.message}`, said);
  return has(error, SETTINGS) ? invalid(error) : error;
}

/** Classifies an error while connecting. If it is not the server's answer, the server is unavailable. */
export function whileConnecting(error: unknown): unknown {
  if (!(error instanceof DatabaseError)) return unavailable(error as Error);
  const known = toKnownError(error);
  // While connecting, the server can refuse nothing but the options of POSTGRES_URL.
  return known === error || errorKind(known) === 'refused' ? invalid(error) : known;
}

function unavailable(cause: Error): FuelError {
  const isLate = /time-?out/i.test(cause.message);
  const other = isLate ? 'has not answered in time' : 'cannot be reached';
  const what = cause instanceof DatabaseError ? 'answers' : other;
  return new FuelError('STORE_UNAVAILABLE', `PostgreSQL ${what}: ${cause.message}`, { cause });
}

function has({ code = '' }: DatabaseError, states: readonly string[]): boolean {
  return states.some((state) => code.startsWith(state));
}

/** The errors of sockets name the system call. */
function isCut(error: unknown): boolean {
  return error instanceof Error && ('syscall' in error || CUT.test(error.message));
}

function invalid(cause: Error, remedy?: string): FuelError {
  const message = `POSTGRES_URL: ${cause.message}`;
  if (remedy === undefined) return new FuelError('CONFIG_INVALID', message, { cause });
  return new FuelError('CONFIG_INVALID', `${message}: ${remedy}`, { cause, remedy });
}
