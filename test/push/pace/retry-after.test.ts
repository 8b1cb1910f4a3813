import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_RETRY_AFTER_MS, retryAfterMs } from '../../../src/push/pace/retry-after.ts';
import { answered, SUCCESS, TIMEOUT } from '../../support/deliveries/deliveries.ts';

const NOW = Date.parse('1994-11-06T08:49:30Z');

const asked = (status: number, retryAfter?: string) => retryAfterMs(answered(status, retryAfter), NOW);

describe('the wait that a receiver asks for', () => {
  test.each([
    ['0', 0],
    ['1', 1_000],
    ['007', 7_000],
    [' 20 ', 20_000],
    ['300', 300_000],
  ])('is %j seconds after a 429 and a 503', (value, ms) => {
    expect(asked(429, value)).toBe(ms);
    expect(asked(503, value)).toBe(ms);
  });

  test.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    'ends at the date %j',
    (date) => {
      expect(asked(429, date)).toBe(7_000);
      expect(asked(503, date)).toBe(7_000);
      expect(retryAfterMs(answered(503, date), NOW + 60_000)).toBe(0);
    },
  );

  test('is five minutes at most', () => {
    expect(MAX_RETRY_AFTER_MS).toBe(300_000);
    for (const long of ['301', '86400', '9'.repeat(400), 'Sun, 06 Nov 2094 08:49:37 GMT'])
      expect(asked(503, long)).toBe(MAX_RETRY_AFTER_MS);
  });

  test.each([
    undefined,
    '',
    '-5',
    '1.5',
    '1e3',
    '0x10',
    '5 seconds',
    '5, 7',
    'soon',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994 08:49:37 +0100',
    'Sun, 06 Nov 1994 28:49:37 GMT',
    'Sun, 06 Foo 1994 08:49:37 GMT',
  ])('is not said by %j: a second after a 429, and none after a 503', (value) => {
    expect(asked(429, value)).toBe(1_000);
    expect(asked(503, value)).toBeNull();
  });

  test('is none after any other answer, nor without one', () => {
    for (const status of [200, 301, 400, 500, 502, 504]) expect(asked(status, '20')).toBeNull();
    expect(retryAfterMs(SUCCESS, NOW)).toBeNull();
    expect(retryAfterMs(TIMEOUT, NOW)).toBeNull();
  });

  test('is from 0 to five minutes whatever the header says', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.constantFrom(429, 503), (value, status) => {
        const ms = asked(status, value);
        return ms === null ? status === 503 : ms >= 0 && ms <= MAX_RETRY_AFTER_MS;
      }),
    );
  });
});
