import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { deliveryId } from '../../../src/push/message/envelope.ts';

/** UUIDv5 as RFC 9562 describes it. */
function uuidV5(name: string, namespace: string): string {
  const bytes = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name)
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

test('the oracle of these tests agrees with the vector of RFC 9562', () => {
  const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
  expect(uuidV5('www.example.com', dns)).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
});

test('a delivery id never changes for a key and a transaction', () => {
  expect(deliveryId('abcdefghij', 501)).toBe('54771e5a-17bf-544a-8a4a-6b7e0160cd50');
});

test('a delivery id is the UUIDv5 of prefix and transaction id', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9]{10}$/), fc.maxSafeNat(), (prefix, transactionId) => {
      expect(deliveryId(prefix, transactionId)).toBe(
        uuidV5(`${prefix}/${transactionId}`, '5b0f6c3e-6d0a-4f5e-9c55-0f4d9c1e7a26'),
      );
    }),
  );
});
