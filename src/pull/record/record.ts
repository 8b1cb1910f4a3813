import type { RenderedRecord } from '../../../projections/record.ts';
import type { PresignUrl, UrlParts } from '../images/presign.ts';

export interface RecordTerms {
  /** Whether the key shows drivers' mobile numbers. */
  readonly mobileNumber: boolean;
  readonly presign: PresignUrl;
  /** When the image URLs expire, as printed. */
  readonly expiresAt: string;
}

/** The same terms for records that are written as bytes. */
export interface WrittenRecordTerms extends Omit<RecordTerms, 'presign'> {
  readonly urls: UrlParts;
}

const MOBILE_NUMBER = ',"mobile_number":';
const FEES = '},"fees":';
const PUMP = ',"images":{"pump":';
const ODOMETER = ',"odometer":';
const EXPIRES_AT = ',"expires_at":';
const QUOTE = 0x22;

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

/** Writes the same of records whose segments are UTF-8 bytes. What the records of a page have in common is encoded once. */
export function recordWriter(
  out: ByteWriter,
  { mobileNumber, urls, expiresAt }: WrittenRecordTerms,
): (record: RenderedRecord<Uint8Array>) => void {
  const mobile = bytesOf(MOBILE_NUMBER);
  const fees = bytesOf(FEES);
  const end = bytesOf(`${EXPIRES_AT}"${expiresAt}"}}`);
  const middle = bytesOf(urls.middle);
  const imageAfter = (name: string): ((objectKey: string | null) => void) => {
    const beforeUrl = bytesOf(`${name}"${urls.start}`);
    return (objectKey) => {
      if (!isImage(objectKey)) return out.ascii(`${name}null`);
      const key = urls.encodeKey(objectKey);
      out.bytes(beforeUrl);
      out.ascii(key);
      out.bytes(middle);
      out.ascii(urls.signature(key));
      out.character(QUOTE);
    };
  };
  const [pump, odometer] = [imageAfter(PUMP), imageAfter(ODOMETER)];
  return (record) => {
    out.bytes(record.head);
    if (mobileNumber && record.mobileNumber !== null) {
      out.bytes(mobile);
      out.bytes(record.mobileNumber);
    }
    out.bytes(fees);
    out.bytes(record.fees);
    pump(record.pump);
    odometer(record.odometer);
    out.bytes(end);
  };
}

/** An empty key would be signed as a URL that lists the bucket. */
function isImage(objectKey: string | null): objectKey is string {
  return objectKey !== null && objectKey !== '';
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text);
}

const GROWTH = 2;

/**
 * Joins bytes and ASCII texts in one buffer. A long JavaScript string costs ten times as much to encode as the same bytes
 * cost to copy.
 */
export class ByteWriter {
  #buffer: Buffer;
  #length = 0;

  /** `expectedBytes` saves the copies of a buffer that grows. */
  constructor(expectedBytes: number) {
    this.#buffer = Buffer.allocUnsafeSlow(expectedBytes);
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** A text without any character beyond ASCII. */
  ascii(text: string): void {
    this.#reserve(text.length);
    this.#length += this.#buffer.write(text, this.#length, 'latin1');
  }

  /** One ASCII character, by its code. */
  character(code: number): void {
    this.#reserve(1);
    this.#buffer[this.#length++] = code;
  }

  /** What was written. Nothing must be written after it. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * GROWTH));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
