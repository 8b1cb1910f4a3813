import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { repeatedMember } from '../../../src/operator/lines/repeated-member.ts';

describe('a member that an object has twice', () => {
  test.each([
    ['{"a":1,"b":2,"a":3}', 'a'],
    ['{"a" : 1, "\\u0061" : 2}', 'a'],
    ['{"a":{"b":1,"c":[{"d":1,"d":1}]}}', 'd'],
    ['{"":1,"":1}', ''],
    ['{"\\"\\\\":1,"\\"\\\\":1}', '"\\'],
    ['[{"a":1},{"__proto__":1,"__proto__":2}]', '__proto__'],
  ])('is named: %s', (json, name) => {
    expect(JSON.parse(json)).toBeDefined();
    expect(repeatedMember(json)).toBe(name);
  });

  test('is none in what was written from values, whatever their texts hold', () => {
    const values = fc.jsonValue({ maxDepth: 5 });
    fc.assert(fc.property(values, (value) => repeatedMember(JSON.stringify(value, null, 1)) === undefined));
    expect(repeatedMember('{"a":"\\"a\\":1,","b":{"a":"}"},"c":["a","a"]}')).toBeUndefined();
  });
});
