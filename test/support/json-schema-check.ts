import { isDeepStrictEqual } from 'node:util';

type Schema = Readonly<Record<string, unknown>>;

/**
 * Whether a document fits a JSON Schema, for the keywords that the published schemas use. An unknown keyword
 * throws, so that none is passed over.
 */
export function fitsJsonSchema(schema: Schema, value: unknown): boolean {
  return Object.entries(schema).every(([keyword, expected]) => fitsKeyword(keyword, expected, value));
}

function fitsKeyword(keyword: string, expected: unknown, value: unknown): boolean {
  switch (keyword) {
    case '$schema':
    case 'title':
    case 'format':
      return true;
    case 'type':
      return [expected].flat().some((type) => isOfType(type, value));
    case 'const':
      return isDeepStrictEqual(value, expected);
    case 'enum':
      return (expected as unknown[]).includes(value);
    case 'minimum':
      return typeof value !== 'number' || value >= (expected as number);
    case 'maximum':
      return typeof value !== 'number' || value <= (expected as number);
    case 'maxLength':
      return typeof value !== 'string' || [...value].length <= (expected as number);
    case 'pattern':
      return typeof value !== 'string' || new RegExp(expected as string, 'u').test(value);
    case 'items':
      return !Array.isArray(value) || value.every((item) => fitsJsonSchema(expected as Schema, item));
    case 'required':
      return !isObject(value) || (expected as string[]).every((name) => Object.hasOwn(value, name));
    case 'properties':
      return !isObject(value) || fitsProperties(expected as Readonly<Record<string, Schema>>, value);
    default:
      throw new RangeError(`the check does not know the keyword ${keyword}`);
  }
}

function fitsProperties(properties: Readonly<Record<string, Schema>>, value: Schema): boolean {
  return Object.entries(properties).every(
    ([name, schema]) => !Object.hasOwn(value, name) || fitsJsonSchema(schema, value[name]),
  );
}

function isOfType(type: unknown, value: unknown): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isObject(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
