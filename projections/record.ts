import { REDACTED } from '../src/domain/transaction.ts';

/**
 * The transaction's record as JSON text. It is rendered once, in segments between the parts that vary per request:
 * `head`, mobile number, `fees`, image URLs. The members have the order of the specification.
 */
export interface RenderedRecord {
  /** The text from `{"id":` to the driver's name, without the driver's closing brace. */
  readonly head: string;
  /** A JSON string; `null` if none was recorded. */
  readonly mobileNumber: string | null;
  /** The `fees` object. */
  readonly fees: string;
  /** The object keys of the photos in the photo store. */
  readonly pump: string | null;
  readonly odometer: string | null;
}

/** Matches the end of a record's head. All quotation marks in its texts are escaped. */
const DRIVER = /("driver":\{"id":\d+,"name":)"(?:[^"\\]|\\.)*"$/;
const REDACTED_DRIVER = new RegExp(`"driver":\\{"id":\\d+,"name":"${REDACTED}"$`);

/** True if the record names the driver: it is neither redacted nor emptied by an erasure. */
export function namesDriver(record: RenderedRecord): boolean {
  return record.head !== '' && !isRedacted(record);
}

/** Returns the record without its driver, or the same object if it does not name the driver. */
export function redactedRecord<Rendered extends RenderedRecord>(record: Rendered): Rendered {
  if (!namesDriver(record)) return record;
  return { ...record, head: record.head.replace(DRIVER, `$1"${REDACTED}"`), mobileNumber: null };
}

export function isRedacted({ head, mobileNumber }: RenderedRecord): boolean {
  return mobileNumber === null && REDACTED_DRIVER.test(head);
}

export function sameRecord(one: RenderedRecord, other: RenderedRecord): boolean {
  return (
    one.head === other.head &&
    one.mobileNumber === other.mobileNumber &&
    one.fees === other.fees &&
    one.pump === other.pump &&
    one.odometer === other.odometer
  );
}
