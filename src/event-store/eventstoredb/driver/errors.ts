import { InvalidArgumentError, MaxAppendSizeExceededError, NotLeaderError } from '@eventstore/db-client';
import { FuelError } from '../../../errors.ts';

/** gRPC statuses: cancelled by the server, deadline exceeded, aborted, internal (a cut connection), unavailable. */
const UNAVAILABLE_CODES = new Set([1, 4, 10, 13, 14]);
const INVALID_ARGUMENT_CODE = 3;
const UNAVAILABLE_TEXT = /^Failed to discover|Channel has been shut down|Server Is (?:Not Ready|Busy)/;

/** No node answered in time. */
export class NoAnswer extends Error {
  constructor(afterMs: number) {
    super(`no answer within ${afterMs} ms`);
    this.name = 'NoAnswer';
  }
}

/** The server ended what it had begun, a subscription say, without an error. */
export class EndedByServer extends Error {
  constructor(what: string) {
    super(`the server ended ${what}`);
    this.name = 'EndedByServer';
  }
}

/** The server says that an event can't be appended, whatever else happens. */
export class AppendRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'AppendRefused';
  }
}

/** An error of the driver as `errorKind` knows it: unavailable, refused, or the error itself. */
export function toKnownError(error: unknown): unknown {
  if (error instanceof FuelError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  if (isUnavailable(error)) {
    return new FuelError('STORE_UNAVAILABLE', `EventStoreDB can not be reached: ${reason}`, { cause: error });
  }
  if (isRefused(error)) {
    return new FuelError('ITEM_REFUSED', `EventStoreDB does not take it: ${reason}`, { cause: error });
  }
  return error;
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof NoAnswer || error instanceof EndedByServer || error instanceof NotLeaderError) {
    return true;
  }
  const code = codeOf(error);
  if (code !== undefined && UNAVAILABLE_CODES.has(code)) return true;
  return error instanceof Error && UNAVAILABLE_TEXT.test(error.message);
}

function isRefused(error: unknown): boolean {
  return (
    error instanceof MaxAppendSizeExceededError ||
    error instanceof InvalidArgumentError ||
    error instanceof AppendRefused ||
    codeOf(error) === INVALID_ARGUMENT_CODE
  );
}

function codeOf(error: unknown): number | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'number' ? code : undefined;
}
