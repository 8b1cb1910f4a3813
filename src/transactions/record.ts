import type { RenderedRecord } from '../../projections/transactions.ts';
import type { PresignUrl } from '../images/presign.ts';
import type { ByteWriter } from './byte-writer.ts';

export interface RecordTerms {
  /** Whether the key shows drivers' mobile numbers. */
  readonly mobileNumber: boolean;
  readonly presign: PresignUrl;
  /** When the image URLs expire, as printed. */
  readonly expiresAt: string;
}

const MOBILE_NUMBER = ',"mobile_number":';
const FEES = '},"fees":';

/** One record as JSON text: its segments joined with what varies per request. Both channels send this. */
export function recordText(record: RenderedRecord, terms: RecordTerms): string {
  const mobile =
    terms.mobileNumber && record.mobileNumber !== null ? MOBILE_NUMBER + record.mobileNumber : '';
  return record.head + mobile + FEES + record.fees + imagesText(record, terms);
}

/** The same, of a record whose texts are UTF-8 bytes. */
export function writeRecord(out: ByteWriter, record: RenderedRecord<Uint8Array>, terms: RecordTerms): void {
  out.bytes(record.head);
  if (terms.mobileNumber && record.mobileNumber !== null) {
    out.ascii(MOBILE_NUMBER);
    out.bytes(record.mobileNumber);
  }
  out.ascii(FEES);
  out.bytes(record.fees);
  out.ascii(imagesText(record, terms));
}

/** From the comma before the images to the end of the record: ASCII, since the characters of a URL are. */
function imagesText(
  { pump, odometer }: Pick<RenderedRecord, 'pump' | 'odometer'>,
  { presign, expiresAt }: RecordTerms,
): string {
  return (
    `,"images":{"pump":${imageUrl(pump, presign)},"odometer":${imageUrl(odometer, presign)},` +
    `"expires_at":"${expiresAt}"}}`
  );
}

/** An empty key would be signed as a URL that lists the bucket. */
function imageUrl(objectKey: string | null, presign: PresignUrl): string {
  return objectKey === null || objectKey === '' ? 'null' : `"${presign(objectKey)}"`;
}
