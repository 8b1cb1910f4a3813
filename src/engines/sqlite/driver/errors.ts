import { basename, resolve } from 'node:path';
import { writeRefused } from '../../../base/disk/disk.ts';
import { type ErrorCode, FuelError } from '../../../base/errors.ts';

const SQLITE_BUSY = 5;
/** This is an extended code. */
const SQLITE_CONSTRAINT_UNIQUE = 2067;
/** Another process holds a lock: busy, locked, the protocol of the write-ahead log. */
const LOCKED_CODES = new Set([SQLITE_BUSY, 6, 15]);
/** Out of memory, read-only, interrupted, an I/O error, a full disk, a file that can't be opened. */
const UNAVAILABLE_CODES = new Set([7, 8, 9, 10, 13, 14]);
/** The codes among them with which a disk refuses a write: read-only, an I/O error, full. */
const DISK_CODES = new Set([8, 10, 13]);
/** A value is too large, violates a constraint, has the wrong type or is out of range. */
const REFUSED_CODES = new Set([18, 19, 20, 25]);
/** The file is malformed, or no database at all. */
const DAMAGED_CODES = new Set([11, 26]);

/** Classifies an error of SQLite for `errorKind`: unavailable, refused, damaged, or the error itself. */
export function toKnownError(path: string, error: unknown): unknown {
  const code = codeOf(error);
  if (code === undefined) return orDamaged(path, error);
  if (DISK_CODES.has(code)) writeRefused();
  const { message } = error as Error;
  const as = (known: ErrorCode): FuelError => new FuelError(known, `${path}: ${message}`, { cause: error });
  if (LOCKED_CODES.has(code)) return as('STORE_BUSY');
  if (UNAVAILABLE_CODES.has(code)) return as('STORE_UNAVAILABLE');
  return REFUSED_CODES.has(code) ? as('ITEM_REFUSED') : orDamaged(path, error);
}

/** True if another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === SQLITE_BUSY;
}

/** True if an error of SQLite says that another process has locked the file. */
export function isLocked(error: unknown): boolean {
  return LOCKED_CODES.has(codeOf(error) ?? 0);
}

/** True if an error of a statement says that a row of the table has the same unique values. */
export function isRepeated(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly errcode?: unknown } };
  return cause?.errcode === SQLITE_CONSTRAINT_UNIQUE;
}

/** Returns `STORE_DAMAGED` if an error of SQLite says that the file is damaged; otherwise the error itself. */
export function orDamaged(path: string, error: unknown): unknown {
  // We store nothing above 2^53, so a larger number means damage.
  const isOutOfRange = (error as { readonly code?: unknown } | null)?.code === 'ERR_OUT_OF_RANGE';
  if (!isOutOfRange && !DAMAGED_CODES.has(codeOf(error) ?? 0)) return error;
  return damagedFile(path, (error as Error).message, { cause: error });
}

export function isDamage(error: unknown): boolean {
  return error instanceof FuelError && error.code === 'STORE_DAMAGED';
}

export function damagedFile(path: string, fault: string, options?: ErrorOptions): FuelError {
  const message = `${resolve(path)} is damaged (${fault}): ${cureOf(path)}`;
  return new FuelError('STORE_DAMAGED', message, options);
}

/** The files that only a backup restores, and how. The service rebuilds the others. */
const RESTORED: Readonly<Record<string, string>> = {
  'events.db': 'restore it from the backup',
  'deliveries.db':
    'restore it from the backup, or without one run: fuel verify deliveries --repair --resend-unknown',
};

/** True if the service rebuilds the file when it is deleted. */
export function isRebuilt(path: string): boolean {
  return RESTORED[basename(path)] === undefined;
}

/** Says what to do about a damaged file. */
export function cureOf(path: string): string {
  const file = resolve(path);
  const rebuilds =
    basename(file) === 'requests.db'
      ? 'creates it again, and only the log of requests is lost'
      : 'rebuilds it, and nothing is lost';
  const cure = isRebuilt(file)
    ? `run: rm -f ${file} ${file}-wal ${file}-shm, and start again: the service ${rebuilds}`
    : `move it, its -wal and its -shm to another folder, and keep them; then ${RESTORED[basename(file)]}`;
  return `stop every process and check the disk; ${cure} (docs/operations/troubleshooting.md, "A file is damaged")`;
}

/** Returns SQLite's primary result code; `undefined` for another error. */
function codeOf(error: unknown): number | undefined {
  const code = (error as { readonly errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}
