import { expect, test } from 'vitest';
import { VISIBLE_STATUSES } from '../../../src/domain/transaction-events.ts';
import { statusCode, statusOf } from '../../../src/engines/stored/rows.ts';

test('each status has a code of its own, which is read as that status', () => {
  const codes = VISIBLE_STATUSES.map(statusCode);
  expect(new Set(codes).size).toBe(VISIBLE_STATUSES.length);
  expect(codes.map((code) => statusOf(code, 7))).toEqual(VISIBLE_STATUSES);
});

test.each([0, 3, null, '1'])('the code %s, which nothing writes, is an error that names the row', (code) => {
  expect(() => statusOf(code, 7)).toThrow(`the row of transaction 7 has an unknown status: ${code}`);
});
