import { DatabaseError } from 'pg';
import { FuelError } from '../../../base/errors.ts';

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
/** The driver's messages for a broken connection. These errors have no code. */
const CUT =
  /^(?:Connection terminated|timeout exceeded when|Client (?:has encountered|was closed)|Query read timeout|Cannot use a pool)/;

/** True if there is no such schema, or no such table in it. */
export function isOfMissing(error: unknown): boolean {
  return error instanceof DatabaseError && has(error, ['3F000', '42P01']);
}

export function isConflict(error: unknown): boolean {
  return error instanceof DatabaseError && has(error, CONFLICT);
}

/** True if the connection can't be used for another statement, or may still be running one. */
export function isOfConnection(error: unknown): boolean {
  return !(error instanceof DatabaseError) || has(error, ['08', '57P']);
}

/** Classifies an error of the driver for `errorKind`: unavailable, refused, or the error itself. */
export function toKnownError(error: unknown): unknown {
  if (!(error instanceof DatabaseError)) return isCut(error) ? unavailable(error as Error) : error;
  if (/unsupported startup parameter/.test(error.message)) return withoutOptions(error);
  if (has(error, UNAVAILABLE)) return unavailable(error);
  const said = { cause: error };
  if (has(error, REFUSED))
    return new FuelError('ITEM_REFUSED', `PostgreSQL does not take it: ${error.message}`, said);
  if (has(error, SETTINGS)) return new FuelError('CONFIG_INVALID', `POSTGRES_URL: ${error.message}`, said);
  return error;
}

/** Classifies an error while connecting. If it is not the server's answer, the server is unavailable. */
export function whileConnecting(error: unknown): unknown {
  return error instanceof DatabaseError ? toKnownError(error) : unavailable(error as Error);
}

export function unavailable(cause: Error): FuelError {
  return new FuelError('STORE_UNAVAILABLE', `PostgreSQL cannot be reached: ${cause.message}`, { cause });
}

function has({ code = '' }: DatabaseError, states: readonly string[]): boolean {
  return states.some((state) => code.startsWith(state));
}

/** The errors of sockets name the system call. */
function isCut(error: unknown): boolean {
  return error instanceof Error && ('syscall' in error || CUT.test(error.message));
}

function withoutOptions(cause: Error): FuelError {
  const remedy = 'set ignore_startup_parameters = options in pgbouncer.ini';
  return new FuelError('CONFIG_INVALID', `POSTGRES_URL: ${cause.message}: ${remedy}`, { cause, remedy });
}
