import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HmacSha256 } from '../../../src/pull/images/hmac-sha256.ts';

const message = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 2_000 }),
  fc.uint8Array({ maxLength: 2_000 }),
);

test('agrees with createHmac for every key, longer than a block too, and every message', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(message, { maxLength: 5 }), (key, messages) => {
      const hmac = new HmacSha256(key);
      for (const text of messages) {
        const expected = createHmac('sha256', key).update(text).digest();
        expect(hmac.hex(text)).toBe(expected.toString('hex'));
        expect(hmac.bytes(text).equals(expected)).toBe(true);
      }
    }),
  );
});

test('several keys in use at once do not disturb each other', () => {
  const first = new HmacSha256(Buffer.from('first'));
  const before = first.hex('message');
  new HmacSha256(Buffer.from('second')).hex('another message');
  expect(first.hex('message')).toBe(before);
});

test('a digest handed out stays as it is when another is made', () => {
  const hmac = new HmacSha256(Buffer.from('key'));
  const digest = hmac.bytes('message');
  const before = digest.toString('hex');
  hmac.bytes('another message');
  expect(digest.toString('hex')).toBe(before);
});

test('a message that is written behind a fixed start has the same digest', () => {
  const start = fc.string({ unit: 'grapheme', maxLength: 200 });
  const ends = fc.array(fc.string({ unit: 'binary-ascii', minLength: 64, maxLength: 64 }), { maxLength: 5 });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), start, ends, (key, before, texts) => {
      const hmac = new HmacSha256(key);
      const hexAfter = hmac.hexAfter(before, 64);
      for (const text of texts) {
        hmac.hex('another message between');
        expect(hexAfter(text)).toBe(
          createHmac('sha256', key)
            .update(before + text)
            .digest('hex'),
        );
      }
    }),
  );
});
