import { type Infer, nullable, optional, type } from 'superstruct';
import { dateTime, decimal2, decimal6, id, integer, nothing, objectKey, text } from './values/primitives.ts';

const namedRef = type({ id, name: text });

const recordFields = {
  transaction_id: id,
  account_id: id,
  created_at: dateTime,
  confirmed_at: nullable(dateTime),
  correction_reference_id: nullable(id),
  corporate: namedRef,
  corporate_group: nullable(namedRef),
  fuel: type({ type: namedRef, liters: decimal2, price_per_liter: decimal2, amount: decimal2 }),
  odometer_reading: nullable(integer),
  distance_traveled: nullable(integer),
  fuel_consumption: nullable(decimal2),
  vehicle: type({
    id,
    code: nullable(text),
    number_plate: nullable(text),
    chassis_number: nullable(text),
    brand: nullable(text),
    model: nullable(text),
    year: nullable(integer),
    department: nullable(namedRef),
  }),
  driver: type({ id, name: text, mobile_number: optional(nullable(text)) }),
  fees: type({ total_fees: decimal2, total_vat: decimal2, total_amount: decimal6 }),
  images: type({ pump: nullable(objectKey), odometer: nullable(objectKey) }),
};

/** The provider has confirmed a refuelling at a station of the network. */
const TransactionConfirmed = type({
  ...recordFields,
  station: type({ id, name: text, provider: namedRef }),
});

/** A refuelling at a station outside the network. The station only has a name. */
const ExternalTransactionRecorded = type({
  ...recordFields,
  station: type({ id: optional(nothing), name: text, provider: optional(nothing) }),
});

const withdrawal = { transaction_id: id, account_id: id, reason: optional(nullable(text)) };

const TransactionVoided = type({ ...withdrawal, voided_at: dateTime });

const TransactionCancelled = type({ ...withdrawal, cancelled_at: dateTime });

export const transactionEvents = {
  TransactionConfirmed,
  ExternalTransactionRecorded,
  TransactionVoided,
  TransactionCancelled,
} as const;

export type TransactionEventType = keyof typeof transactionEvents;
export type TransactionEvent = {
  [T in TransactionEventType]: { readonly type: T; readonly data: Infer<(typeof transactionEvents)[T]> };
}[TransactionEventType];

/** The status that customers see, by the event that records the transaction. */
export const STATUSES = {
  TransactionConfirmed: 'CONFIRMED',
  ExternalTransactionRecorded: 'EXTERNAL',
} as const satisfies Partial<Record<TransactionEventType, string>>;

export type RecordingType = keyof typeof STATUSES;
export type VisibleStatus = (typeof STATUSES)[RecordingType];
export const VISIBLE_STATUSES: readonly VisibleStatus[] = Object.values(STATUSES);

/** The type of the webhook that announces a transaction of each status. */
export const WEBHOOK_TYPES = {
  CONFIRMED: 'transaction.confirmed',
  EXTERNAL: 'transaction.external',
} as const satisfies Record<VisibleStatus, string>;

export type TransactionWebhookType = (typeof WEBHOOK_TYPES)[VisibleStatus];

/** True if an event of this type records a transaction. */
export function isRecordingType(type: string): type is RecordingType {
  return Object.hasOwn(STATUSES, type);
}

/** True if a transaction is no longer shown or sent after an event of this type. */
export function isWithdrawalType(type: string): boolean {
  return isTransactionEventType(type) && !isRecordingType(type);
}

export const TRANSACTION_STREAMS = 'transaction-';
export const transactionStream = (transactionId: number): string => `${TRANSACTION_STREAMS}${transactionId}`;

/** Returns the transaction id in a stream's name; `undefined` for a stream of another kind. */
export function transactionIdOf(stream: string): number | undefined {
  const id = Number(stream.slice(TRANSACTION_STREAMS.length));
  return Number.isSafeInteger(id) && stream === transactionStream(id) ? id : undefined;
}

export function isTransactionEventType(type: string): type is TransactionEventType {
  return Object.hasOwn(transactionEvents, type);
}
