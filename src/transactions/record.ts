import type { RenderedRecord } from '../../projections/transactions.ts';
import type { PresignUrl } from '../images/presign.ts';

export interface RecordTerms {
  /** Whether the key shows drivers' mobile numbers. */
  readonly mobileNumber: boolean;
  readonly presign: PresignUrl;
  /** When the image URLs expire, as printed. */
  readonly expiresAt: string;
}

/** One record as JSON text: its segments joined with what varies per request. Both channels send this. */
export function recordText(record: RenderedRecord, terms: RecordTerms): string {
  const mobile =
    terms.mobileNumber && record.mobileNumber !== null ? `,"mobile_number":${record.mobileNumber}` : '';
  return (
    `${record.head}${mobile}},"fees":${record.fees},"images":{` +
    `"pump":${imageUrl(record.pump, terms.presign)},` +
    `"odometer":${imageUrl(record.odometer, terms.presign)},` +
    `"expires_at":"${terms.expiresAt}"}}`
  );
}

/** An empty key would be signed as a URL that lists the bucket. */
function imageUrl(objectKey: string | null, presign: PresignUrl): string {
  return objectKey === null || objectKey === '' ? 'null' : `"${presign(objectKey)}"`;
}
