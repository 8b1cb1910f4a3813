import { FuelError } from '../../base/errors.ts';
import { formatDateTime, parseDateTime } from '../../domain/values/date-time.ts';
import type { DeliveryState } from '../../push/queue/delivery.ts';
import type { DeliveryFilter } from '../../push/queue/delivery-queue.ts';
import { readPrefix } from './names.ts';

// Readers of what an operator types. They throw `USAGE`, and never repeat the text, which may be a secret.

export function readId(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new FuelError('USAGE', 'It must be an integer from 0 to 2^53-1.');
}

/** Returns milliseconds since the epoch. */
export function readTime(text: string): number {
  const ms = parseDateTime(text);
  if (ms !== undefined) return ms;
  throw new FuelError(
    'USAGE',
    'It must be an ISO 8601 date-time with Z or an offset, such as 2026-09-01T00:00:00Z.',
  );
}

/** Throws if the range ends before it begins, since the answer would always be empty. */
export function requireRange({
  since,
  until,
}: {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}): void {
  if (since === undefined || until === undefined || since <= until) return;
  throw new FuelError(
    'USAGE',
    `--since ${formatDateTime(since)} is after --until ${formatDateTime(until)}: nothing can be between them.`,
  );
}

/** Throws if the time is in the future. */
export function requirePast(atMs: number | undefined, nowMs: number): void {
  if (atMs === undefined || atMs <= nowMs) return;
  const at = formatDateTime(atMs);
  throw new FuelError('USAGE', `--at ${at} is still to come: nobody has seen anything then`);
}

/** The properties by which an operator can choose deliveries. */
export interface DeliveryChoice {
  readonly state?: DeliveryState | undefined;
  readonly key?: string | undefined;
  readonly account?: number | undefined;
  readonly transaction?: number | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** Throws `USAGE` if the key can't be a prefix, or the range ends before it begins. */
export function deliveryFilter(given: DeliveryChoice): DeliveryFilter {
  const { key, account, transaction, state, since, until } = given;
  if (key !== undefined) readPrefix(key);
  requireRange(given);
  return {
    prefix: key,
    accountId: account,
    transactionIds: transaction === undefined ? undefined : [transaction],
    state,
    sinceMs: since,
    untilMs: until,
  };
}
