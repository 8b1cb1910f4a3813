import type { Struct } from 'superstruct';
import { MAX_TEXT_CHARACTERS } from '../../src/domain/values/bounds.ts';
import { MAX_PER_SECOND } from '../../src/domain/values/primitives.ts';

/** A schema of JSON Schema draft 2020-12. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly type: string | readonly string[];
}

type AnyStruct = Struct<never, unknown>;

const MAX = Number.MAX_SAFE_INTEGER;
const DATE_TIME_PATTERN =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$';
/** Forbids the segments `.` and `..`. */
const OBJECT_KEY_PATTERN = '^(?!([^]*/)?[.][.]?(/|$))';
const MAX_DECIMAL = 40; // characters, as in src/domain/values/decimal.ts

/** The schemas of structs that are not composed of others, by name (src/domain/values/primitives.ts). */
const primitives: Readonly<Record<string, JsonSchema>> = {
  null: { type: 'null' },
  boolean: { type: 'boolean' },
  string: { type: 'string' },
  text: { type: 'string', maxLength: MAX_TEXT_CHARACTERS },
  object_key: { type: 'string', maxLength: MAX_TEXT_CHARACTERS, pattern: OBJECT_KEY_PATTERN },
  id: { type: 'integer', minimum: 0, maximum: MAX },
  integer: { type: 'integer', minimum: -MAX, maximum: MAX },
  per_second: { type: 'integer', minimum: 1, maximum: MAX_PER_SECOND },
  decimal2: decimal(2),
  decimal6: decimal(6),
  date_time: { type: 'string', format: 'date-time', pattern: DATE_TIME_PATTERN },
};

/**
 * Returns the JSON Schema of what a struct accepts. Objects allow further properties, as the structs do. Only `format`
 * says that a date must exist, and a validator may ignore it. Throws a `RangeError` for a kind of struct that no event
 * has used so far.
 */
export function jsonSchemaOf(struct: AnyStruct): JsonSchema {
  const schema = withoutNull(struct);
  return struct.is(null) && schema.type !== 'null' ? orNull(schema) : schema;
}

function withoutNull(struct: AnyStruct): JsonSchema {
  switch (struct.type) {
    case 'type':
      return objectSchema(struct.schema as Readonly<Record<string, AnyStruct>>);
    case 'array':
      return { type: 'array', items: jsonSchemaOf(struct.schema as AnyStruct) };
    case 'enums':
      return { type: 'string', enum: Object.values(struct.schema as Readonly<Record<string, string>>) };
    default: {
      const primitive = primitives[struct.type];
      if (primitive === undefined) throw new RangeError(`no JSON Schema is known for "${struct.type}"`);
      return primitive;
    }
  }
}

function objectSchema(members: Readonly<Record<string, AnyStruct>>): JsonSchema {
  const entries = Object.entries(members);
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, struct]) => [name, jsonSchemaOf(struct)])),
    required: entries.filter(([, struct]) => !struct.is(undefined)).map(([name]) => name),
  };
}

function orNull(schema: JsonSchema): JsonSchema {
  const values = schema.enum as readonly string[] | undefined;
  return { ...schema, type: [schema.type, 'null'].flat(), ...(values && { enum: [...values, null] }) };
}

function decimal(decimals: number): JsonSchema {
  return {
    type: 'string',
    pattern: `^-?(0|[1-9][0-9]*)([.][0-9]{1,${decimals}})?$`,
    maxLength: MAX_DECIMAL,
  };
}
