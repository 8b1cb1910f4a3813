import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteWriter } from '../../src/transactions/byte-writer.ts';

const ascii = fc.string({ unit: 'binary-ascii', maxLength: 50 });

test('what was written is there in order, however little was expected', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(ascii, fc.uint8Array({ maxLength: 50 }))),
      fc.integer({ min: 0, max: 100 }),
      (parts, expectedBytes) => {
        const writer = new ByteWriter(expectedBytes);
        for (const part of parts) typeof part === 'string' ? writer.ascii(part) : writer.bytes(part);
        const expected = Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)));
        expect(writer.written().equals(expected)).toBe(true);
      },
    ),
  );
});
