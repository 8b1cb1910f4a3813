import { v5 } from 'uuid';

/** Must never change: receivers recognise deliveries by ids made from it. */
export const DELIVERY_NAMESPACE = '5b0f6c3e-6d0a-4f5e-9c55-0f4d9c1e7a26';

/** The id of the one delivery that a key is owed for a transaction: UUIDv5 of `<key prefix>/<transaction id>`. */
export function deliveryId(prefix: string, transactionId: number): string {
  return v5(`${prefix}/${transactionId}`, DELIVERY_NAMESPACE);
}
