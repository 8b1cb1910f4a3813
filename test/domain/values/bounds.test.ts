import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isTextTooLong,
  MAX_TEXT_CHARACTERS,
  nestsDeeperThan,
  shortened,
} from '../../../src/domain/values/bounds.ts';
import { sameJson } from '../../../src/domain/values/same-json.ts';
import { nested } from '../../support/transactions/deep-values.ts';

describe('a text', () => {
  test('has at most 1,000 characters, those outside the first plane counting once', () => {
    expect(MAX_TEXT_CHARACTERS).toBe(1_000);
    for (const character of ['x', 'é', '漢', '😀']) {
      expect(isTextTooLong(character.repeat(1_000))).toBe(false);
      expect(isTextTooLong(character.repeat(1_001))).toBe(true);
      expect(isTextTooLong(character.repeat(100_000))).toBe(true);
    }
    const unit = fc.constantFrom('x', '😀', '\uD83D');
    const texts = fc.string({ unit, minLength: 900, maxLength: 1_100, size: 'max' });
    fc.assert(
      fc.property(texts, (text) => {
        expect(isTextTooLong(text)).toBe([...text].length > 1_000);
      }),
      { numRuns: 50 },
    );
  });

  test('that is quoted is cut to the maximum length of a reason', () => {
    expect(shortened('x'.repeat(1_000))).toBe('x'.repeat(1_000));
    expect(shortened('x'.repeat(1_001))).toBe(`${'x'.repeat(999)}…`);
  });
});

describe('nesting', () => {
  test('is counted from the value itself', () => {
    for (const value of [null, undefined, 7, 'text', true]) expect(nestsDeeperThan(value, 0)).toBe(false);
    expect(nestsDeeperThan({}, 0)).toBe(true);
    expect(nestsDeeperThan({ a: 1 }, 1)).toBe(false);
    expect(nestsDeeperThan({ a: 1, b: [] }, 1)).toBe(true);
    expect(nestsDeeperThan(nested(64), 64)).toBe(false);
    expect(nestsDeeperThan(nested(65), 64)).toBe(true);
  });

  test('of any depth is measured, and compared', () => {
    const [one, same, other] = [nested(200_000), nested(200_000), nested(200_001)];
    expect(nestsDeeperThan(one, 64)).toBe(true);
    expect(sameJson({ extra: one }, { extra: same })).toBe(true);
    expect(sameJson({ extra: one }, { extra: other })).toBe(false);
  });
});

describe('the same JSON', () => {
  test('is decided as texts with sorted members would', () => {
    const values = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(values, values, (one, other) => {
        expect(sameJson(one, structuredClone(one))).toBe(true);
        expect(sameJson(one, other)).toBe(sorted(one) === sorted(other));
      }),
    );
    expect(sameJson([], {})).toBe(false);
    expect(sameJson({ a: undefined }, { b: undefined })).toBe(false);
    expect(sameJson(null, {})).toBe(false);
  });
});

function sorted(value: unknown): string {
  return JSON.stringify(value, (_, member) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
