import { array, enums, type Infer, nullable, string, type } from 'superstruct';
import { dateTime, id, integer, text } from './values/primitives.ts';

/** The remains of events that were removed from the log: their indexes in its tree, and their hashes in base64. */
const sealedLeaves = array(type({ stream: string(), revision: integer, index: integer, hash: string() }));
export type SealedLeaves = Infer<typeof sealedLeaves>;

export const operationsEvents = {
  /** The first event of the stream, which identifies the store. Checkpoints contain the same id. */
  StoreNamed: type({ store_id: string() }),
  /** The environment that the store belongs to. */
  EnvironmentSet: type({ environment: enums(['staging', 'production']) }),
  /**
   * A master key of the store: its fingerprint, the id by which ciphertexts name it, and a reason if an operator added
   * it.
   */
  MasterKeyAdded: type({
    fingerprint: string(),
    master_key_id: string(),
    reason: nullable(string()),
  }),
  DeliveryLogStarted: type({ log_id: string(), started_at: dateTime }),
  ViewRebuilt: type({ view: string(), reason: string() }),
  AgreementRepaired: type({ what: string(), repaired: integer }),
  /** A nightly verification has finished. `left` counts what still differs. */
  AgreementVerified: type({ transactions: integer, left: integer }),
  /** The embedded files were copied. The copy has the log up to this position. */
  BackupMade: type({ events_up_to: integer }),
  ParkedRetried: type({ projection: string(), positions: array(integer) }),
  /** An event that can never be applied is skipped permanently. */
  ParkedSkipped: type({ position: integer, stream: string(), revision: integer, reason: text }),
  StoreCopied: type({ from_store_id: string(), events: integer, deliveries: integer }),
  /** The store was moved to these addresses and must not be used any more. */
  StoreMoved: type({ to: array(string()) }),
  /** The store may be used again, despite the earlier `StoreMoved`. */
  StoreUnmarked: type({ reason: string() }),
  TransactionErased: type({
    transaction_id: id,
    account_id: nullable(id),
    reason: string(),
    leaves: sealedLeaves,
  }),
  /**
   * This driver's name and number were removed from every transaction of the account that was recorded before. If many
   * events changed, their leaves are spread over several events of this type.
   */
  DriverRedacted: type({ driver_id: id, account_id: id, reason: string(), leaves: sealedLeaves }),
  /**
   * In the stream `seals`: the tree of the log's first `size` events has this root, signed as a checkpoint. `edge`
   * holds the roots of its complete subtrees, and `last` names its last event. `leaves` has one line for each event
   * since the previous seal, with its stream, its revision and the start of its hash, deflated. Hashes are base64.
   */
  LogSealed: type({
    size: integer,
    root: string(),
    checkpoint: string(),
    edge: array(string()),
    last: type({ stream: string(), revision: integer }),
    leaves: string(),
  }),
  /** It was proven that the log is what was sealed, up to this size. */
  LogProven: type({ size: integer, root: string() }),
  /**
   * In the stream `notices-<account id>`: this audience was notified of an event. It prevents a second notice after the
   * store was copied or a checkpoint was lost.
   */
  NoticeSent: type({ account_id: id, event_id: string(), audience: enums(['customer', 'operator']) }),
  /**
   * In the stream `imports-<month>`, like `ImportEnded`. It precedes everything that the import records, which has the
   * correlation id of this event; `ImportEnded` follows it.
   */
  ImportStarted: type({ import_id: string(), source: text }),
  /** Missing if the import was killed. `accounts` lists those of the recorded events, at most `MAX_IMPORT_ACCOUNTS`. */
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
/** How many accounts an `ImportEnded` lists, so that the event stays small. */
export const MAX_IMPORT_ACCOUNTS = 1_000;
export const IMPORTS_STREAMS = 'imports-';
/** The stream of the imports that started in a month, such as `2026-09`. */
export const importsStream = (month: string): string => `${IMPORTS_STREAMS}${month}`;
export const NOTICES_STREAMS = 'notices-';
export const noticesStream = (accountId: number): string => `${NOTICES_STREAMS}${accountId}`;

export function isOperationsEventType(type: string): type is OperationsEventType {
  return Object.hasOwn(operationsEvents, type);
}
