import type { RenderedRecord } from '../../../projections/record.ts';
import type { PresignUrl } from '../images/presign.ts';

export interface RecordTerms {
  /** Whether the key shows drivers' mobile numbers. */
  readonly mobileNumber: boolean;
  readonly presign: PresignUrl;
  /** When the image URLs expire, as printed. */
  readonly expiresAt: string;
}

const MOBILE_NUMBER = ',"mobile_number":';
const FEES = '},"fees":';
const PUMP = ',"images":{"pump":';
const ODOMETER = ',"odometer":';
const EXPIRES_AT = ',"expires_at":';

/** One record as JSON text: its segments joined with what varies per request. Both channels send this. */
export function recordText(
  record: RenderedRecord,
  { mobileNumber, presign, expiresAt }: RecordTerms,
): string {
  const mobile = mobileNumber && record.mobileNumber !== null ? MOBILE_NUMBER + record.mobileNumber : '';
  const image = (objectKey: string | null) => (isImage(objectKey) ? `"${presign(objectKey)}"` : 'null');
  return (
    `${record.head}${mobile}${FEES}${record.fees}${PUMP}${image(record.pump)}` +
    `${ODOMETER}${image(record.odometer)}${EXPIRES_AT}"${expiresAt}"}}`
  );
}

/** An empty key would be signed as a URL that lists the bucket. */
function isImage(objectKey: string | null): objectKey is string {
  return objectKey !== null && objectKey !== '';
}

/**
 * The record as one text, as it is stored: a line each of `head`, `fees`, the mobile number, and the object keys of the two
 * photos as JSON strings. What is `null` is an empty line. No line has a line feed within, since all of it is JSON.
 */
export function storedRecord({ head, fees, mobileNumber, pump, odometer }: RenderedRecord): string {
  return `${head}\n${fees}\n${mobileNumber ?? ''}\n${storedKey(pump)}\n${storedKey(odometer)}`;
}

/** Throws `Error` for a text that is no stored record. */
export function recordIn(stored: string): RenderedRecord {
  const [head = '', fees, mobile, pump, odometer, ...more] = stored.split('\n');
  if (
    fees === undefined ||
    mobile === undefined ||
    pump === undefined ||
    odometer === undefined ||
    more.length > 0
  )
    throw new Error('a record of five lines is stored otherwise');
  return {
    head,
    mobileNumber: mobile === '' ? null : mobile,
    fees,
    pump: keyIn(pump),
    odometer: keyIn(odometer),
  };
}

function storedKey(objectKey: string | null): string {
  return objectKey === null ? '' : JSON.stringify(objectKey);
}

function keyIn(stored: string): string | null {
  return stored === '' ? null : (JSON.parse(stored) as string);
}
