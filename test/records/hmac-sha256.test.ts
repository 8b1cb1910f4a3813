import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hexAfter } from '../../src/records/presign.ts';

const start = fc.string({ unit: 'grapheme', maxLength: 2_000 });
const ends = fc.array(fc.string({ unit: 'binary-ascii', minLength: 64, maxLength: 64 }), { maxLength: 5 });

test('agrees with createHmac for every key, longer than a block too, every start and every end', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), start, ends, (key, before, texts) => {
      const hex = hexAfter(key, before, 64);
      for (const text of texts) {
        expect(hex(text)).toBe(
          createHmac('sha256', key)
            .update(before + text)
            .digest('hex'),
        );
      }
    }),
  );
});

test('several keys in use at once do not disturb each other', () => {
  const first = hexAfter(Buffer.from('first'), 'a', 7);
  const before = first('message');
  hexAfter(Buffer.from('second'), 'b', 7)('another');
  expect(first('message')).toBe(before);
});
