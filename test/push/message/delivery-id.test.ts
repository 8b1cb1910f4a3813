import fc from 'fast-check';
import { v5 } from 'uuid';
import { expect, test } from 'vitest';
import { deliveryId } from '../../../src/push/message/envelope.ts';

const NAMESPACE = '5b0f6c3e-6d0a-4f5e-9c55-0f4d9c1e7a26';

test('a delivery id never changes for a key and a transaction', () => {
  expect(deliveryId('abcdefghij', 501)).toBe('54771e5a-17bf-544a-8a4a-6b7e0160cd50');
});

test('a delivery id is the UUIDv5 of prefix and transaction id', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9]{10}$/), fc.maxSafeNat(), (prefix, transactionId) => {
      expect(deliveryId(prefix, transactionId)).toBe(v5(`${prefix}/${transactionId}`, NAMESPACE));
    }),
  );
});
