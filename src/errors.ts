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
  CONFIG_INVALID: 'one or more settings are not valid',
  SECRET_UNREADABLE: 'a stored secret can not be decrypted with the master keys given',
  REFUSED: 'the command is not possible in the present state',
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
