import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { signature } from '../../../src/push/message/envelope.ts';
import { isGenuine } from '../../support/deliveries/is-genuine.ts';

const secret = 'S'.repeat(43);
const body = '{"a":1}';
const atMs = 1_789_200_000_999;
const header = signature({ secret, body, atMs });

test('a signature is the one that another implementation made for the same terms', () => {
  expect(header).toBe('t=1789200000,v1=809b4fba2198a254dd9d611b4143a1a46ba1109d720943074678897b4b24bcd4');
});

test('a signature agrees with createHmac for every secret and body', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 3_000 });
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 100 }), text, (anySecret, anyBody) => {
      const expected = createHmac('sha256', anySecret).update(`1789200000.${anyBody}`).digest('hex');
      const made = signature({ secret: anySecret, body: anyBody, atMs });
      expect(made).toBe(`t=1789200000,v1=${expected}`);
      const received = { header: made, secret: anySecret, body: Buffer.from(anyBody), nowMs: atMs };
      expect(isGenuine(received)).toBe(true);
    }),
  );
});
