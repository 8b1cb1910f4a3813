import { define, type Struct } from 'superstruct';
import { objectKeyFault, textFault } from './bounds.ts';
import { parseDateTime } from './date-time.ts';
import { printDecimal } from './decimal.ts';

// The name of each struct is the key of its JSON Schema (docs/events).

/** An identifier: an integer from 0 to 2^53-1. */
export const id: Struct<number, null> = define('id', (value) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? true : 'must be an integer from 0 to 2^53-1',
);

/** A measured whole number; negative values are possible (a corrected odometer). */
export const integer: Struct<number, null> = define('integer', (value) =>
  Number.isSafeInteger(value) ? true : 'must be an integer from -(2^53-1) to 2^53-1',
);

/** The highest limit that can be set on one webhook's deliveries a second. */
export const MAX_PER_SECOND = 1_000;
export const perSecond: Struct<number, null> = define('per_second', (value) =>
  Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_PER_SECOND
    ? true
    : `must be an integer from 1 to ${MAX_PER_SECOND}`,
);

export const text: Struct<string, null> = define('text', (value) => {
  if (typeof value !== 'string') return 'must be a string';
  return textFault(value) ?? true;
});

/** The key of an object in the photo store. */
export const objectKey: Struct<string, null> = define('object_key', (value) =>
  typeof value === 'string' ? (objectKeyFault(value) ?? true) : 'must be a string',
);

/** A text that is not only white space. */
export const name: Struct<string, null> = define('name', (value) => {
  if (typeof value !== 'string' || value.trim() === '') return 'must be a string that is not blank';
  return textFault(value) ?? true;
});

export const email: Struct<string, null> = define('email', (value) => {
  if (typeof value !== 'string' || !isEmail(value)) return 'must be an e-mail address';
  return textFault(value) ?? true;
});

/** Checks the form of an e-mail address. Only the mail server knows if it exists. */
export function isEmail(value: string): boolean {
  return /^[^\s\p{C}@<>()[\]\\,;:"]+@(?:[\p{L}\p{M}\p{N}_-]+\.)*[\p{L}\p{M}\p{N}_-]+$/u.test(value);
}

/** An exact decimal as a string, with at most `decimals` digits after the point. */
export const decimal = (decimals: number): Struct<string, null> =>
  define(`decimal${decimals}`, (value) =>
    typeof value === 'string' && printDecimal(value, decimals) !== undefined
      ? true
      : `must be a decimal as a string with at most ${decimals} decimals, such as "45.2"`,
  );

/** An ISO 8601 date-time with seconds and `Z` or an offset. */
export const dateTime: Struct<string, null> = define('date_time', (value) =>
  typeof value === 'string' && parseDateTime(value) !== undefined
    ? true
    : 'must be an ISO 8601 date-time that exists, such as "2026-09-03T08:15:30.123Z"',
);

/** A field that may be absent or null, but never has a value. */
export const nothing: Struct<null, null> = define('null', (value) =>
  value === null ? true : 'must be absent or null',
);
