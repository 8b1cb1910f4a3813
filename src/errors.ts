/**
 * Every error this service raises on purpose, by code. What a caller must tell apart is a typed result, not
 * an error; these are for what ends an operation. HTTP statuses stand in src/http/answers.ts alone.
 */
export const errorCodes = {
  STORE_CLOSED: 'a store was used after it was closed',
  STORE_BUSY: 'another process kept the store locked for longer than it may',
  STORE_NEWER: 'a file was written by a newer version of this service',
  STORE_MISMATCH: 'a checkpoint belongs to another event store, or lies ahead of its end',
  STORE_UNAVAILABLE: 'a store can not be reached',
  STORE_DAMAGED: 'an embedded file is damaged, or is none',
  ITEM_REFUSED: 'a store can not take this item, however often it is given',
  CONFIG_INVALID: 'one or more settings are not valid',
  SECRET_UNREADABLE: 'a stored secret can not be decrypted with the master keys given',
  REFUSED: 'the command is not possible in the present state',
  OUTPUT_LOST: 'a secret that is shown one time could not be written to standard output',
  USAGE: 'the command line was used wrongly',
} as const;

export type ErrorCode = keyof typeof errorCodes;

export class FuelError extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'FuelError';
    this.code = code;
  }
}

/**
 * What an error calls for. `unavailable`: the store it needs can't be reached or is locked: wait, then try again.
 * `closed`: whoever asked is stopping. `refused`: this item can't be taken: isolate and park it, and continue with
 * the others. `fault`: of the program; trying again changes nothing.
 *
 * Each driver's own errors are told apart where its connection is: src/mongodb/connection.ts,
 * src/event-store/eventstoredb/driver/errors.ts, src/sqlite/database.ts.
 */
export type ErrorKind = 'unavailable' | 'closed' | 'refused' | 'fault';

export function errorKind(error: unknown): ErrorKind {
  if (!(error instanceof FuelError)) return 'fault';
  switch (error.code) {
    case 'STORE_UNAVAILABLE':
    case 'STORE_BUSY':
      return 'unavailable';
    case 'STORE_CLOSED':
      return 'closed';
    case 'ITEM_REFUSED':
      return 'refused';
    default:
      return 'fault';
  }
}

export function isUnavailable(error: unknown): boolean {
  return errorKind(error) === 'unavailable';
}

/** An error in words, under its own name where it is none of this service's. */
export function reasonOf(error: unknown): string {
  if (error instanceof FuelError) return error.message;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
