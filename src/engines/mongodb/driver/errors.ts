import {
  BSON,
  MongoBulkWriteError,
  MongoError,
  MongoInvalidArgumentError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { FuelError } from '../../../base/errors.ts';

/**
 * Codes after which another server, or soon this one, takes the operation: not primary, shutting down, stepping down,
 * out of time, and the like.
 */
const UNAVAILABLE_CODES = new Set([
  6, 7, 43, 50, 64, 89, 91, 133, 134, 189, 262, 276, 9001, 10107, 11600, 11602, 13435, 13436,
]);
const UNAVAILABLE_LABELS = ['RetryableWriteError', 'TransientTransactionError', 'SystemOverloadedError'];
/** Codes for a document that is too large, also after an update, or that fails the collection's validation. */
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
const DUPLICATE_KEY = 11_000;
const UNKNOWN_ERROR = 8;

/** Classifies an error of the driver for `errorKind`: unavailable, refused, or the error itself. */
export function toKnownError(error: unknown): unknown {
  if (isUnavailable(error)) return unavailable(error as Error);
  if (isRefused(error)) {
    const { message } = error as Error;
    return new FuelError('ITEM_REFUSED', `MongoDB refuses an item: ${message}`, { cause: error });
  }
  return error;
}

function isRefused(error: unknown): boolean {
  if (BSON.BSONError.isBSONError(error) || error instanceof MongoInvalidArgumentError) return true;
  // The document does not fit into the driver's buffer.
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
  return new FuelError('STORE_UNAVAILABLE', `MongoDB cannot be reached: ${cause.message}`, { cause });
}

function isWithoutConfig(topology: MongoServerSelectionError['reason']): boolean {
  const servers = [...(topology?.servers?.values() ?? [])];
  return servers.length > 0 && servers.every(({ type }) => type === 'RSGhost');
}

export function notInitiated(cause?: Error): FuelError {
  const remedy = 'run rs.initiate() once in mongosh';
  const message = `MongoDB answers, but its replica set was never initiated: ${remedy}`;
  return new FuelError('STORE_UNAVAILABLE', message, { cause, remedy });
}

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
}

/**
 * Returns the places of those writes of an unordered bulk write whose id existed already, if nothing else failed.
 * Throws the server's own error for any other failure, so that a temporary one can be told from a permanent one.
 */
export function duplicatesIn(error: unknown): readonly number[] {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const failures = [error.writeErrors].flat();
  const other = failures.find(({ code }) => code !== DUPLICATE_KEY) ?? error.result.getWriteConcernError();
  if (other !== undefined) {
    const { errmsg: message = error.message, code = UNKNOWN_ERROR } = other;
    throw new MongoServerError({ message, code });
  }
  if (failures.length === 0) throw error; // the connection failed, so it is unknown what was written
  return failures.map(({ index }) => index);
}
