import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printable, printableLine, withoutKeys } from '../../src/base/printable.ts';

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => String.fromCharCode(first + index));
const STEERING = [
  ...range(0x00, 0x1f),
  ...range(0x7f, 0x9f),
  '\u061c',
  '\u200e',
  '\u200f',
  ...range(0x202a, 0x202e),
  ...range(0x2066, 0x2069),
].filter((character) => character !== '\n');

describe('what steers a terminal', () => {
  test('is escaped as JSON does it, each character of it', () => {
    for (const character of STEERING) {
      const hex = character.charCodeAt(0).toString(16).padStart(4, '0');
      expect(printable(`a${character}b`)).toBe(`a\\u${hex}b`);
      expect(JSON.parse(printable(JSON.stringify({ name: character })))).toEqual({ name: character });
    }
  });

  test('leaves JSON the same, and everything else as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(JSON.parse(printable(JSON.stringify(text)))).toBe(text);
      }),
    );
    expect(printable('Zürich, Ωmega, 日本 👍\nnext line')).toBe('Zürich, Ωmega, 日本 👍\nnext line');
  });

  test('is a line feed too, where a name must not make a line of its own', () => {
    expect(printableLine('a\nfuel: done')).toBe('a\\u000afuel: done');
  });
});

test('a message names a key by its prefix alone', () => {
  const secret = 'S3cret'.repeat(7);
  expect(withoutKeys(`unknown: svc_live_abcdefghij_${secret}, svc_test_0123456789_${secret}x`)).toBe(
    'unknown: svc_live_abcdefghij_…, svc_test_0123456789_…',
  );
});
