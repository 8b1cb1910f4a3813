/**
 * Every error that this service throws on purpose, by code. An error ends an operation; outcomes that a caller has to
 * distinguish are typed results. HTTP statuses are only in src/pull/answers.ts.
 */
export const errorCodes = {
  STORE_CLOSED: 'a store was used after it was closed',
  STORE_BUSY: 'another process kept the store locked for too long',
  STORE_NEWER: 'a file was written by a newer version of this service',
  STORE_MISMATCH: 'a checkpoint belongs to another event store, or is ahead of its end',
  STORE_MOVED: 'the embedded store was moved into engines: nothing may change it here any more',
  STORE_UNAVAILABLE: 'a store cannot be reached',
  STORE_DAMAGED: 'an embedded file is damaged, or not a file of this service',
  ITEM_REFUSED: 'a store cannot take this item, and a retry does not change that',
  CONFIG_INVALID: 'one or more settings are not valid',
  SECRET_UNREADABLE: 'a stored secret cannot be decrypted with the configured master keys',
  REFUSED: 'the command is not possible in the present state',
  OUTPUT_LOST: 'what a command prints could not be written to standard output',
  USAGE: 'the command line was used wrongly',
} as const;

export type ErrorCode = keyof typeof errorCodes;

export class FuelError extends Error {
  readonly code: ErrorCode;
  /** The remedy, if more is known than the code says. */
  readonly remedy: string | undefined;
  constructor(code: ErrorCode, message: string, options?: ErrorOptions & { readonly remedy?: string }) {
    super(message, options);
    this.name = 'FuelError';
    this.code = code;
    this.remedy = options?.remedy;
  }
}

/**
 * The kinds of errors, by what to do about them.
 *
 * - `unavailable`: a store can't be reached or is locked. Wait and retry.
 * - `closed`: the caller is stopping.
 * - `refused`: this item can't be stored. Isolate and park it, and continue with the others.
 * - `fault`: the program is at fault. A retry changes nothing.
 *
 * Each driver's errors are mapped in src/engines/<engine>/driver/errors.ts.
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

/** The message of an error, with its name if it is not a `FuelError`. */
export function reasonOf(error: unknown): string {
  if (error instanceof FuelError) return error.message;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** Restores the error that a worker thread threw: the copy that arrives is not a `FuelError` but has its fields. */
export function errorOfThread(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof FuelError) return error;
  const { code } = error as { readonly code?: unknown };
  if (typeof code !== 'string' || !Object.hasOwn(errorCodes, code)) return error;
  return new FuelError(code as ErrorCode, error.message, { cause: error });
}

/** The advice for a URL that can't be read because of its user name or password. */
export const ENCODE_CREDENTIALS =
  'in its user name and password write @ : / ? # % and spaces as %40 %3A %2F %3F %23 %25 %20';

const NOT_ENCODED = /[@:/?#%\s]/;

/**
 * The error for a connection string that its driver rejects. It quotes the driver's message, unless that contains a
 * part of the password.
 */
export function refusedConnectionString(
  { setting, url }: { readonly setting: string; readonly url: string },
  reason: unknown,
): FuelError {
  const said = (reason instanceof Error ? reason.message : String(reason)).replace(/\.$/, '');
  const [, user = '', password] = /:\/\/([^:]*):(.*)@/s.exec(url) ?? [];
  const isTold = password?.split(/[:@/?#%]/).some((part) => part !== '' && said.includes(part)) ?? false;
  const why = isTold ? 'the driver cannot read it' : said;
  const advice = NOT_ENCODED.test(user) || NOT_ENCODED.test(password ?? '') ? `: ${ENCODE_CREDENTIALS}` : '';
  return new FuelError('CONFIG_INVALID', `${setting}: ${why}${advice}`);
}
