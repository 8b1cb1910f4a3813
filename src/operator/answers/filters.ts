import { systemClock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { DAY_MS, parseDateTime } from '../../domain/values/date-time.ts';
import type { ShownFilter, ShownState } from '../../push/held.ts';
import { readPrefix } from './names.ts';

// Readers of what an operator types. They throw `USAGE` with what the text must be, and never repeat it, since it may be a secret.

export function readId(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new FuelError('USAGE', 'must be an integer from 0 to 2^53-1');
}

const AGO = /^(\d{1,6})([smhd])$/;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };

/**
 * Returns milliseconds since the epoch for a date-time, for a date, which stands for its first moment in UTC, and for how long
 * ago it was, such as `2h`.
 */
export function readTime(text: string): number {
  const [, count, unit] = AGO.exec(text) ?? [];
  if (unit !== undefined) return systemClock.now() - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  const ms = parseDateTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (ms !== undefined) return ms;
  throw new FuelError(
    'USAGE',
    'must be a time with an offset (2026-09-01T08:00:00Z), a date (2026-09-01) or how long ago it was (30m, 2h, 7d)',
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
  throw new FuelError('USAGE', '--since must not be later than --until');
}

/** Throws if the time is in the future. */
export function requirePast(atMs: number | undefined, nowMs: number): void {
  if (atMs === undefined || atMs <= nowMs) return;
  throw new FuelError('USAGE', '--at is in the future');
}

/** The properties by which an operator can choose deliveries. */
export interface DeliveryChoice {
  readonly state?: ShownState | undefined;
  readonly key?: string | undefined;
  readonly account?: number | undefined;
  readonly transaction?: number | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** Throws `USAGE` if the key can't be a prefix, or the range ends before it begins. */
export function deliveryFilter(given: DeliveryChoice): ShownFilter {
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
