import { validate } from 'superstruct';
import { expect, test } from 'vitest';
import { dateTime, decimal2, id, integer, nothing, text } from '../../../src/domain/values/primitives.ts';

test.each([
  [id, [0, 2 ** 53 - 1], [-1, 1.5, 2 ** 53, '1', [1], null], 'must be an integer from 0 to 2^53-1'],
  [
    integer,
    [-(2 ** 53) + 1, 0, 2 ** 53 - 1],
    [1.5, 2 ** 53, -(2 ** 53), '1', [1], null],
    'must be an integer from -(2^53-1) to 2^53-1',
  ],
  [text, ['', 'x'.repeat(1_000)], [7, ['x'], {}, null], 'must be a string'],
  [text, [], ['x'.repeat(1_001)], 'must have at most 1000 characters'],
  [
    decimal2,
    ['0', '-7.25'],
    ['7.255', '', 7, ['7.25'], null],
    'must be a decimal as a string with at most 2 decimals, such as "45.2"',
  ],
  [
    dateTime,
    ['2026-09-03T08:15:30Z'],
    ['2026-02-30T08:15:30Z', 1_788_423_330, ['2026-09-03T08:15:30Z'], null],
    'must be an ISO 8601 date-time that exists, such as "2026-09-03T08:15:30.123Z"',
  ],
  [nothing, [null, undefined], [0, '', false, {}], 'must be absent or null: the station is external'],
])(
  'a value of the type $type is taken, or refused with what it must be: %#',
  (struct, taken, refused, problem) => {
    const faultOf = (value: unknown) => validate(value, struct as typeof text)[0]?.message;
    expect(taken.map(faultOf)).toEqual(taken.map(() => undefined));
    expect(refused.map(faultOf)).toEqual(refused.map(() => problem));
  },
);
