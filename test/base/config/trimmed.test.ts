import { expect, test } from 'vitest';
import { trimmed } from '../../../src/base/config/trimmed.ts';

test('white space and what shows nothing is cut at the ends of a text, and kept inside', () => {
  expect(trimmed('\ufeff\u200b \u00a0Ana \u200bField\r\n\u2028\u200f')).toBe('Ana \u200bField');
  expect(trimmed(' \ufeff ')).toBe('');
});
