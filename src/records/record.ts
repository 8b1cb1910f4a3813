import type { RenderedRecord } from '../../projections/record.ts';
import type { PresignUrl } from './presign.ts';

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

/** Returns one record as JSON text: its segments, joined with the parts that vary by request. Both channels send it. */
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

/** An empty object key is no image: it would be signed as a URL that lists the bucket. */
function isImage(objectKey: string | null): objectKey is string {
  return objectKey !== null && objectKey !== '';
}

/**
 * Returns the text in which a record is stored. It has five lines: `head`, `fees`, the mobile number, and the object keys of
 * the two photos as JSON strings. An empty line stands for `null`. JSON text contains no line feed, so lines are safe.
 */
export function storedRecord({ head, fees, mobileNumber, pump, odometer }: RenderedRecord): string {
  return `${head}\n${fees}\n${mobileNumber ?? ''}\n${storedKey(pump)}\n${storedKey(odometer)}`;
}

/** Parses what `storedRecord` returns. Throws an `Error` for any other text. */
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
