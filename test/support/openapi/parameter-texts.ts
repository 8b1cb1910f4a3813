import fc from 'fast-check';
import { type Parameter, type Schema, withoutReference } from './document.ts';
import { faultsOfValue } from './validate.ts';

/** How many items are generated at most in a valid list. */
const MAX_ITEMS = 20;

/** True if the document's schema allows this text for a parameter. */
function isAllowed({ schema }: Parameter, text: string): boolean {
  return faultsOfValue(schema, readText(withoutReference(schema), text)).length === 0;
}

/** Generates texts that the parameter's schema allows. */
export function allowedTexts(parameter: Parameter): fc.Arbitrary<string> {
  return textsOf(parameter.schema).filter((text) => isAllowed(parameter, text));
}

/** Generates texts that the schema forbids: arbitrary ones, near misses, and values just beyond a bound. */
export function forbiddenTexts(parameter: Parameter): fc.Arbitrary<string> {
  const near = fc
    .tuple(textsOf(parameter.schema), fc.nat(), fc.nat({ max: 2 }), fc.string({ maxLength: 2 }))
    .map(([text, at, removed, added]) => {
      const start = at % (text.length + 1);
      return text.slice(0, start) + added + text.slice(start + removed);
    });
  const anything = fc.oneof(
    fc.constant(''),
    fc.string({ unit: 'grapheme', maxLength: 30 }),
    fc.integer().map(String),
    fc.double().map(String),
    fc.array(fc.integer(), { maxLength: 5 }).map((items) => items.join(',')),
  );
  return fc
    .oneof(near, near, anything, fc.constantFrom('', ...beyondBounds(parameter.schema)))
    .filter((text) => !HAS_NEGATIVE_ZERO.test(text) && !isAllowed(parameter, text));
}

/** Matches -0, of which no schema says if it is the integer 0. No client sends it. */
const HAS_NEGATIVE_ZERO = /(^|,)-0+(,|$)/;

/**
 * Returns the value of a text in the query. A text that is not an integer stays a text, which integer schemas forbid.
 */
function readText(schema: Schema, text: string): unknown {
  if (schema.type === 'array') {
    const items = withoutReference(schema.items as Schema);
    return [...new Set(text.split(',').map((part) => readText(items, part)))]; // repeated ones count once
  }
  if (schema.type === 'integer') return /^-?[0-9]+$/.test(text) ? Number(text) : text;
  return schema.format === 'date-time' ? text.replace(' ', '+') : text;
}

function textsOf(given: Schema): fc.Arbitrary<string> {
  const schema = withoutReference(given);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as string[]));
  switch (schema.type) {
    case 'integer': {
      const { minimum: min, maximum: max } = schema as { minimum: number; maximum: number };
      return fc.oneof(fc.constantFrom(min, max), fc.integer({ min, max })).map(String);
    }
    case 'array':
      return fc
        .array(textsOf(schema.items as Schema), { minLength: Number(schema.minItems), maxLength: MAX_ITEMS })
        .map((items) => items.join(','));
    case 'string':
      return typeof schema.pattern === 'string'
        ? fc.stringMatching(new RegExp(schema.pattern))
        : fc.string({ minLength: Number(schema.minLength) });
    default:
      throw new RangeError(`no texts are known for ${JSON.stringify(schema)}`);
  }
}

function beyondBounds(given: Schema): string[] {
  const schema = withoutReference(given);
  if (schema.type === 'array') {
    const items = beyondBounds(schema.items as Schema);
    if (typeof schema.maxItems !== 'number') return items;
    return [...items, Array.from({ length: schema.maxItems + 1 }, (_, index) => index).join(',')];
  }
  if (schema.type !== 'integer') return [];
  const { minimum, maximum } = schema as { minimum: number; maximum: number };
  return [BigInt(minimum) - 1n, BigInt(maximum) + 1n, BigInt(maximum) * 10n].map(String);
}
