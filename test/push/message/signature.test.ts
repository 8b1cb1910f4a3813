import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { signature } from '../../../src/push/message/envelope.ts';
import { isGenuine } from '../../support/deliveries/is-genuine.ts';

const secret = 'S'.repeat(43);
const body = '{"a":1}';
const atMs = 1_789_200_000_999;
const header = signature({ secret, body, atMs });

const check = (changes: Partial<Parameters<typeof isGenuine>[0]> = {}) =>
  isGenuine({ header, secret, body: Buffer.from(body), nowMs: atMs, ...changes });

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

test('a signature is genuine only for its secret, its body and its time', () => {
  expect(check()).toBe(true);
  expect(check({ secret: 'T'.repeat(43) })).toBe(false);
  expect(check({ body: Buffer.from('{"a":2}') })).toBe(false);
  expect(check({ header: header.replace('t=1789200000', 't=1789200001') })).toBe(false);
});

test('a signature is fresh for 5 minutes before and after its time', () => {
  const signedAtMs = 1_789_200_000_000;
  expect(check({ nowMs: signedAtMs + 300_000 })).toBe(true);
  expect(check({ nowMs: signedAtMs + 300_001 })).toBe(false);
  expect(check({ nowMs: signedAtMs - 300_000 })).toBe(true);
  expect(check({ nowMs: signedAtMs - 300_001 })).toBe(false);
});

test('a header of another form is not genuine', () => {
  for (const other of [
    '',
    't=1',
    header.toUpperCase(),
    `${header},v1=00`,
    header.slice(0, -2),
    `x${header}`,
  ]) {
    expect(check({ header: other })).toBe(false);
  }
});
