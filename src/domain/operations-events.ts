import { array, enums, type Infer, nullable, optional, string, type } from 'superstruct';
import { dateTime, id, integer, text } from './values/primitives.ts';

/** What is left of events that were taken out of the log: where they stood in its tree, and their hashes, in base64. */
const sealedLeaves = array(type({ stream: string(), revision: integer, index: integer, hash: string() }));
export type SealedLeaves = Infer<typeof sealedLeaves>;

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
  /** A nightly verification came to its end; `left`: what still differs. */
  AgreementVerified: type({ transactions: integer, left: integer }),
  /** The embedded files were copied; the copy has the log up to this position. */
  BackupMade: type({ events_up_to: integer }),
  ParkedRetried: type({ projection: string(), positions: array(integer) }),
  /** An event that can never be applied is done without. */
  ParkedSkipped: type({ position: integer, stream: string(), revision: integer, reason: text }),
  StoreCopied: type({ from_store_id: string(), events: integer, deliveries: integer }),
  /** The store was copied to these addresses, and is not to be used any more. */
  StoreMoved: type({ to: array(string()) }),
  /** It is to be used again, in spite of the `StoreMoved` before. */
  StoreUnmarked: type({ reason: string() }),
  TransactionErased: type({
    transaction_id: id,
    account_id: nullable(id),
    reason: string(),
    leaves: optional(sealedLeaves),
  }),
  /**
   * In every transaction of the account that was recorded before, this driver's name and number are gone. Of many events
   * the leaves are in several of these.
   */
  DriverRedacted: type({ driver_id: id, account_id: id, reason: string(), leaves: optional(sealedLeaves) }),
  /**
   * In the stream `seals`: the tree of the log's first `size` events has this root, signed as a checkpoint. `edge`: the
   * roots of its complete subtrees; `last`: its last event; `leaves`: place and start of the hash of each event since the
   * seal before, one a line, deflated. Hashes are base64.
   */
  LogSealed: type({
    size: integer,
    root: string(),
    checkpoint: string(),
    edge: array(string()),
    last: type({ stream: string(), revision: integer }),
    leaves: string(),
  }),
  /** Somebody proved that the log is what was sealed, up to this size. */
  LogProven: type({ size: integer, root: string() }),
  /**
   * In the stream `notices-<account id>`: this audience was notified of an event, so that neither a copied store nor a
   * lost subscription notifies it again.
   */
  NoticeSent: type({ account_id: id, event_id: string(), audience: enums(['customer', 'operator']) }),
  /**
   * In the stream `imports-<month>`, as is its end: before anything of it is recorded. What it records has the correlation
   * id of this event.
   */
  ImportStarted: type({ import_id: string(), source: text }),
  /** In the stream `import-<import id>`: the transactions that its next append is about, before that append. */
  ImportPlanned: type({ import_id: string(), transactions: array(id) }),
  /** Missing where the import was killed. `accounts`: those of what it recorded, the first `MAX_IMPORT_ACCOUNTS`. */
  ImportEnded: type({
    import_id: string(),
    recorded: integer,
    unchanged: integer,
    refused: integer,
    accounts: array(id),
  }),
} as const;

export type OperationsEventType = keyof typeof operationsEvents;
export type OperationsEvent = {
  [T in OperationsEventType]: { readonly type: T; readonly data: Infer<(typeof operationsEvents)[T]> };
}[OperationsEventType];

export const OPERATIONS_STREAM = 'operations';
export const SEALS_STREAM = 'seals';
/** So that the event stays small. */
export const MAX_IMPORT_ACCOUNTS = 1_000;
export const IMPORTS_STREAMS = 'imports-';
/** The plans of one import. */
export const importStream = (importId: string): string => `import-${importId}`;
/** The imports that began in a month: `2026-09`. */
export const importsStream = (month: string): string => `${IMPORTS_STREAMS}${month}`;
export const noticesStream = (accountId: number): string => `notices-${accountId}`;

export function isOperationsEventType(type: string): type is OperationsEventType {
  return Object.hasOwn(operationsEvents, type);
}
