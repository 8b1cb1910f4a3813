import { FuelError, reasonOf } from '../../base/errors.ts';
import { formatDateTime, parseDateTime } from '../../domain/values/date-time.ts';
import { DELIVERY_STATES, type DeliveryState } from '../../push/queue/delivery.ts';
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

function readState(text: string): DeliveryState {
  const known = DELIVERY_STATES.find((name) => name === text);
  if (known !== undefined) return known;
  throw new FuelError('USAGE', `It must be one of ${DELIVERY_STATES.join(', ')}.`);
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

const DELIVERY_READERS = {
  state: readState,
  key: (text: string) => text,
  account: readId,
  transaction: readId,
  since: readTime,
  until: readTime,
} as const;

export type DeliveryField = keyof typeof DELIVERY_READERS;
type Given = { readonly [F in DeliveryField]?: ReturnType<(typeof DELIVERY_READERS)[F]> | undefined };

export const DELIVERY_FIELDS = Object.keys(DELIVERY_READERS) as readonly DeliveryField[];

/** Throws `USAGE` if the key can't be a prefix, or the range ends before it begins. */
export function deliveryFilter(given: Given): DeliveryFilter {
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

/** Reads a filter that is given as text. Returns everything that is wrong with it, or the filter. */
export function readDeliveryFilter(
  given: Readonly<Partial<Record<DeliveryField, string>>>,
): { readonly given: Given; readonly filter: DeliveryFilter } | { readonly faults: readonly string[] } {
  const faults: string[] = [];
  const attempt = <T>(name: string, read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof FuelError)) throw error;
      faults.push(`${name}${reasonOf(error)}`);
      return undefined;
    }
  };
  const read = Object.fromEntries(
    DELIVERY_FIELDS.map((field) => {
      const text = given[field];
      return [
        field,
        text === undefined ? undefined : attempt(`${field}: `, () => DELIVERY_READERS[field](text)),
      ];
    }),
  ) as Given;
  const filter = attempt('', () => deliveryFilter(read));
  return filter === undefined || faults.length > 0 ? { faults } : { given: read, filter };
}
