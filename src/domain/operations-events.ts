import { array, enums, type Infer, nullable, optional, string, type } from 'superstruct';
import { dateTime, id, integer, text } from './values/primitives.ts';

export const operationsEvents = {
  /** The first event of the stream: which store this is. Checkpoints carry the same id. */
  StoreNamed: type({ store_id: string() }),
  /** Which environment the store belongs to. */
  EnvironmentSet: type({ environment: enums(['staging', 'production']) }),
  /**
   * A master key of the store, by its fingerprint and the id that ciphertexts name it by; with a reason where it was
   * added by hand.
   */
  MasterKeyAdded: type({
    fingerprint: string(),
    master_key_id: optional(string()),
    reason: nullable(string()),
  }),
  DeliveryLogStarted: type({ log_id: string(), started_at: dateTime }),
  ViewRebuilt: type({ view: string(), reason: string() }),
  AgreementRepaired: type({ what: string(), repaired: integer }),
  ParkedRetried: type({ projection: string(), positions: array(integer) }),
  /** An event that can never be applied is done without. */
  ParkedSkipped: type({ position: integer, stream: string(), revision: integer, reason: text }),
  StoreCopied: type({ from_store_id: string(), events: integer, deliveries: integer }),
  /** The store was copied to these addresses, and is not to be used any more. */
  StoreMoved: type({ to: array(string()) }),
  /** It is to be used again, in spite of the `StoreMoved` before. */
  StoreUnmarked: type({ reason: string() }),
  TransactionErased: type({ transaction_id: id, account_id: nullable(id), reason: string() }),
  /**
   * In the stream `notices-<account id>`: this audience was notified of an event, so that neither a copied store nor a
   * lost subscription notifies it again.
   */
  NoticeSent: type({ account_id: id, event_id: string(), audience: enums(['customer', 'operator']) }),
} as const;

export type OperationsEventType = keyof typeof operationsEvents;
export type OperationsEvent = {
  [T in OperationsEventType]: { readonly type: T; readonly data: Infer<(typeof operationsEvents)[T]> };
}[OperationsEventType];

export const OPERATIONS_STREAM = 'operations';
export const noticesStream = (accountId: number): string => `notices-${accountId}`;

export function isOperationsEventType(type: string): type is OperationsEventType {
  return Object.hasOwn(operationsEvents, type);
}
