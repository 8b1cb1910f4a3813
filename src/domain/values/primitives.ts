import { define, type Struct } from 'superstruct';
import { textFault } from './bounds.ts';
import {
  ABSENT,
  DATE_TIME,
  DECIMAL_2,
  DECIMAL_6,
  ID,
  INTEGER,
  type Kind,
  OBJECT_KEY,
  TEXT,
} from './kinds.ts';

/** The name of each struct is the key of its JSON Schema (docs/events). */
function structOf<T>(name: string, kind: Kind): Struct<T, null> {
  return define(name, (value) => kind.print(value) !== undefined || kind.fault(value));
}

export const id = structOf<number>('id', ID);
export const integer = structOf<number>('integer', INTEGER);
export const text = structOf<string>('text', TEXT);
export const objectKey = structOf<string>('object_key', OBJECT_KEY);
export const decimal2 = structOf<string>('decimal2', DECIMAL_2);
export const decimal6 = structOf<string>('decimal6', DECIMAL_6);
export const dateTime = structOf<string>('date_time', DATE_TIME);
export const nothing = structOf<null>('null', ABSENT);

/** The highest limit that can be set on one webhook's deliveries a second. */
export const MAX_PER_SECOND = 1_000;
export const perSecond: Struct<number, null> = define('per_second', (value) =>
  Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_PER_SECOND
    ? true
    : `must be an integer from 1 to ${MAX_PER_SECOND}`,
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
