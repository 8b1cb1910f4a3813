import { isRelative, MAX_TEXT_CHARACTERS, textFault } from './bounds.ts';
import { printedDateTime } from './date-time.ts';
import { printDecimal } from './decimal.ts';

/** A kind of value in a transaction's events. Their schemas and the rendering of records accept the same values by it. */
export interface Kind {
  /** Returns the value as JSON text; `undefined` if it does not fit. */
  readonly print: (value: unknown) => string | undefined;
  /** Says what is wrong with a value that does not fit. */
  readonly fault: (value: unknown) => string;
}

/** An identifier. */
export const ID: Kind = {
  print: (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? `${value}` : undefined),
  fault: () => 'must be an integer from 0 to 2^53-1',
};

/** A measured whole number; negative values are possible (a corrected odometer). */
export const INTEGER: Kind = {
  print: (value) => (Number.isSafeInteger(value) ? `${value}` : undefined),
  fault: () => 'must be an integer from -(2^53-1) to 2^53-1',
};

export const TEXT: Kind = {
  print(value) {
    if (typeof value !== 'string') return undefined;
    if (value.length <= MAX_TEXT_CHARACTERS && PLAIN.test(value)) return `"${value}"`;
    return textFault(value) === undefined ? JSON.stringify(value) : undefined;
  },
  fault: (value) => (typeof value === 'string' && textFault(value)) || 'must be a string',
};

/** The key of an object in the photo store. */
export const OBJECT_KEY: Kind = {
  print: (value) => (typeof value === 'string' && isRelative(value) ? undefined : TEXT.print(value)),
  fault: (value) =>
    typeof value === 'string' && isRelative(value) ? 'must have no segment . or ..' : TEXT.fault(value),
};

export const DECIMAL_2 = decimalOf(2);
export const DECIMAL_6 = decimalOf(6);

/** An ISO 8601 date-time with seconds and `Z` or an offset. */
export const DATE_TIME: Kind = {
  print(value) {
    const printed = typeof value === 'string' ? printedDateTime(value) : undefined;
    return printed && `"${printed}"`;
  },
  fault: () => 'must be an ISO 8601 date-time that exists, such as "2026-09-03T08:15:30.123Z"',
};

/** A member of the station that an external transaction never has. */
export const ABSENT: Kind = {
  print: (value) => ((value ?? null) === null ? 'null' : undefined),
  fault: () => 'must be absent or null: the station is external',
};

/**
 * Matches text that JSON does not escape, which saves `JSON.stringify`. It has no control characters, quotes,
 * backslashes or surrogates.
 */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** An exact decimal as a string, with at most `decimals` digits after the point. */
function decimalOf(decimals: number): Kind {
  return {
    print: (value) => (typeof value === 'string' ? printDecimal(value, decimals) : undefined),
    fault: () => `must be a decimal as a string with at most ${decimals} decimals, such as "45.2"`,
  };
}
