import { describe, expect, it } from 'vitest';
import { openApi, type Schema, withoutReference } from '../support/openapi/document.ts';

/** Keywords whose value is one schema, a list of schemas, or schemas by name. */
const ONE = ['schema', 'if', 'then', 'else', 'not', 'items', 'additionalProperties'];
const LISTS = ['anyOf', 'oneOf', 'allOf'];
const BY_NAME = ['properties', 'schemas'];
const EXAMPLES = ['example', 'examples'];

/** Returns every schema in a part of the document, with where it stands. A boolean is a schema too. */
function schemasIn(part: unknown, path = ''): [path: string, schema: unknown][] {
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([name, value]): [string, unknown][] => {
    if (EXAMPLES.includes(name)) return [];
    const at = `${path}/${name}`;
    const isGroup = LISTS.includes(name) || BY_NAME.includes(name);
    const own = ONE.includes(name) ? [[at, value] as [string, unknown]] : [];
    const members = isGroup ? Object.entries(value).map(([key, one]) => [`${at}/${key}`, one]) : [];
    return [...own, ...(members as [string, unknown][]), ...schemasIn(value, at)];
  });
}

/** Returns what a schema has that a generator of typed clients mistakes. Such a client fails, or loses exact amounts. */
function faultsOf(schema: unknown): string[] {
  if (typeof schema === 'boolean') return [`write ${schema ? '{}' : '{ not: {} }'} instead of ${schema}`];
  const { 'x-decimals': decimals, format, anyOf, oneOf } = schema as Schema;
  const faults: string[] = [];
  if ((decimals !== undefined) !== (format === 'decimal'))
    faults.push('x-decimals and format: decimal belong together');
  if (anyOf !== undefined) faults.push('use type: [..., "null"] for a primitive, and oneOf for an object');
  for (const choice of (oneOf ?? []) as readonly Schema[]) {
    const { type } = withoutReference(choice);
    if (type !== 'object' && type !== 'null') faults.push(`use type: [${type}, "null"] instead of oneOf`);
  }
  return faults;
}

function faultsIn(part: unknown): string[] {
  return schemasIn(part).flatMap(([path, schema]) => faultsOf(schema).map((fault) => `${path}: ${fault}`));
}

describe('for the generators of typed clients', () => {
  it('docs/openapi.yaml has what they understand', () => {
    const found = schemasIn(openApi);
    expect(found.map(([path]) => path)).toContain(
      '/components/schemas/ErrorResponse/properties/error/else/else/properties/fields',
    );
    expect(faultsIn(openApi)).toEqual([]);
  });

  it.each([
    ['a schema that is a boolean', { properties: { a: false } }],
    ['a branch that is a boolean', { if: true }],
    ['an amount without a format', { properties: { a: { type: 'number', 'x-decimals': 2 } } }],
    ['a decimal of any length', { items: { type: 'number', format: 'decimal' } }],
    [
      'a primitive or null',
      { properties: { a: { anyOf: [{ $ref: '#/components/schemas/Id' }, { type: 'null' }] } } },
    ],
    [
      'a primitive among alternatives',
      { schema: { oneOf: [{ $ref: '#/components/schemas/Text' }, { type: 'null' }] } },
    ],
  ])('%s would be found', (_, part) => {
    expect(faultsIn(part)).toHaveLength(1);
  });
});
