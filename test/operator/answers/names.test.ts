import { expect, test } from 'vitest';
import { some } from '../../../src/operator/answers/names.ts';

test('a long list of names is shortened', () => {
  expect(some(['a', 'b'])).toBe('a, b');
  expect(some(['a', 'b', 'c', 'd', 'e', 'f'])).toBe('a, b, c, d, e, …');
});
