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

/** The data of an event, or an object in it. */
export type Fields = Readonly<Record<string, unknown>>;

/** A value in an event that does not fit, so that its record can't be shown. */
export class RecordFault extends Error {
  constructor(path: string, problem: string) {
    super(`${path}: ${problem}`);
    this.name = 'RecordFault';
  }
}

/** Returns an object's members. Throws a `RecordFault` if it is not an object. */
export function fieldsOf(value: unknown, path: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new RecordFault(path, 'must be an object');
}

// Each function prints a value of one kind as JSON text, or throws a `RecordFault`. One function for all kinds would take a tenth
// longer, since it could not be inlined.

export function id(value: unknown, path: string): string {
  return ID.print(value) ?? refuse(ID, value, path);
}

export function nullableInteger(value: unknown, path: string): string {
  return value === null ? 'null' : (INTEGER.print(value) ?? refuse(INTEGER, value, path));
}

export function text(value: unknown, path: string): string {
  return TEXT.print(value) ?? refuse(TEXT, value, path);
}

export function nullableText(value: unknown, path: string): string {
  return value === null ? 'null' : text(value, path);
}

export function nullableKey(value: unknown, path: string): string {
  return value === null ? 'null' : (OBJECT_KEY.print(value) ?? refuse(OBJECT_KEY, value, path));
}

export function decimal2(value: unknown, path: string): string {
  return DECIMAL_2.print(value) ?? refuse(DECIMAL_2, value, path);
}

export function decimal6(value: unknown, path: string): string {
  return DECIMAL_6.print(value) ?? refuse(DECIMAL_6, value, path);
}

export function dateTime(value: unknown, path: string): string {
  return DATE_TIME.print(value) ?? refuse(DATE_TIME, value, path);
}

export function absent(value: unknown, path: string): string {
  return ABSENT.print(value) ?? refuse(ABSENT, value, path);
}

function refuse(kind: Kind, value: unknown, path: string): never {
  throw new RecordFault(path, kind.fault(value));
}
