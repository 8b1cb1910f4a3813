import { REDACTED } from '../src/domain/transaction.ts';

/**
 * The transaction's record as JSON text, printed once, in segments between what varies per request: `head`, mobile
 * number, `fees`, image URLs. The members have the order of the specification. A view returns the segments of a page as
 * UTF-8 bytes, which are joined as they are.
 */
export interface RenderedRecord<Segment extends string | Uint8Array = string> {
  /** From `{"id":` to the driver's name, without the driver's closing brace. */
  readonly head: Segment;
  /** A JSON string, `null` when none was recorded. */
  readonly mobileNumber: Segment | null;
  /** The `fees` object. */
  readonly fees: Segment;
  /** Object keys in the photo store. */
  readonly pump: string | null;
  readonly odometer: string | null;
}

/** The end of a record's head: its texts have no quotation mark that is not escaped. */
const DRIVER = /("driver":\{"id":\d+,"name":)"(?:[^"\\]|\\.)*"$/;
const REDACTED_DRIVER = new RegExp(`"driver":\\{"id":\\d+,"name":"${REDACTED}"$`);

/** Whether the record tells who drove: it is not redacted, nor emptied by an erasure. */
export function namesDriver(record: RenderedRecord): boolean {
  return record.head !== '' && !isRedacted(record);
}

/** What is rendered of the record without its driver; the same object where that is so already, or it is empty. */
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
