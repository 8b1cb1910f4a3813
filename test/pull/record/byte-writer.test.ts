import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteWriter } from '../../../src/pull/record/record.ts';

const ascii = fc.string({ unit: 'binary-ascii', maxLength: 50 });
const character = fc.integer({ min: 0, max: 127 });

test('what was written is there in order, however little was expected', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(ascii, character, fc.uint8Array({ maxLength: 50 }))),
      fc.integer({ min: 0, max: 100 }),
      (parts, expectedBytes) => {
        const writer = new ByteWriter(expectedBytes);
        for (const part of parts) {
          if (typeof part === 'string') writer.ascii(part);
          else if (typeof part === 'number') writer.character(part);
          else writer.bytes(part);
        }
        const expected = Buffer.concat(
          parts.map((part) =>
            typeof part === 'string'
              ? Buffer.from(part)
              : typeof part === 'number'
                ? Buffer.from([part])
                : Buffer.from(part),
          ),
        );
        expect(writer.written().equals(expected)).toBe(true);
      },
    ),
  );
});
