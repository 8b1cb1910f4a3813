import { hash } from 'node:crypto';

/** Must never change: receivers recognise deliveries by ids made from it. */
const DELIVERY_NAMESPACE = '5b0f6c3e-6d0a-4f5e-9c55-0f4d9c1e7a26';

const NAMESPACE_BYTES = Buffer.from(DELIVERY_NAMESPACE.replaceAll('-', ''), 'hex');

/**
 * The id of the one delivery that a key is owed for a transaction: UUIDv5 of `<key prefix>/<transaction id>`. A
 * verification makes one for each transaction, and the library's takes seven times as long.
 */
export function deliveryId(prefix: string, transactionId: number): string {
  const digest = hash('sha1', Buffer.concat([NAMESPACE_BYTES, Buffer.from(`${prefix}/${transactionId}`)]));
  const variant = ((Number.parseInt(digest.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return (
    `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-` +
    `${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`
  );
}
