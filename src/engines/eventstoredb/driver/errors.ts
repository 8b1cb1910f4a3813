import { InvalidArgumentError, MaxAppendSizeExceededError, NotLeaderError } from '@eventstore/db-client';
import { FuelError } from '../../../base/errors.ts';

/** The gRPC statuses cancelled (by the server), deadline exceeded, aborted, internal (a cut connection), unavailable. */
const UNAVAILABLE_CODES = new Set([1, 4, 10, 13, 14]);
const INVALID_ARGUMENT_CODE = 3;
const UNAVAILABLE_TEXT = /^Failed to discover|Channel has been shut down|Server Is (?:Not Ready|Busy)/;

/** The error if no node can do it now. */
export function storeUnavailable(reason: string, cause?: unknown): FuelError {
  return new FuelError('STORE_UNAVAILABLE', `EventStoreDB or KurrentDB cannot be reached: ${reason}`, {
    cause,
  });
}

/** The error if the server can never accept this event. */
export function itemRefused(reason: string, cause?: unknown): FuelError {
  return new FuelError('ITEM_REFUSED', `the event store refuses an item: ${reason}`, { cause });
}

/** Classifies an error of the driver for `errorKind`: unavailable, refused, or the error itself. */
export function toKnownError(error: unknown): unknown {
  if (error instanceof FuelError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  if (isUnavailable(error)) return storeUnavailable(reason, error);
  return isRefused(error) ? itemRefused(reason, error) : error;
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof NotLeaderError) return true;
  const code = codeOf(error);
  if (code !== undefined && UNAVAILABLE_CODES.has(code)) return true;
  return error instanceof Error && UNAVAILABLE_TEXT.test(error.message);
}

function isRefused(error: unknown): boolean {
  return (
    error instanceof MaxAppendSizeExceededError ||
    error instanceof InvalidArgumentError ||
    codeOf(error) === INVALID_ARGUMENT_CODE
  );
}

function codeOf(error: unknown): number | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'number' ? code : undefined;
}
