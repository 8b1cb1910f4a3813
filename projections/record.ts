import { REDACTED } from '../src/domain/transaction.ts';

/**
 * The record of an erased transaction. Any other record is a JSON text that is rendered once, from its event, and stored as it
 * is in the view and in the delivery log. It is what customers get, but has all mobile numbers, and `images` has the photos'
 * object keys instead of URLs.
 */
export const NO_RECORD = '';

/** The places in a record at which it is cut. Quotation marks within texts are escaped, so only members are found. */
interface Cuts {
  readonly driver: number;
  /** The start of the mobile number's member, or `fees` if there is none. */
  readonly mobileNumber: number;
  /** The end of the driver's members. */
  readonly fees: number;
  readonly images: number;
}

const DRIVER = ',"driver":{"id":';
const NAME = ',"name":';
const MOBILE_NUMBER = ',"mobile_number":';
const FEES = '},"fees":{';
const IMAGES = ',"images":{"pump":';
const ODOMETER = ',"odometer":';
const END = '}}';

/** A record, cut at the image URLs, which differ for each request. */
interface CutRecord {
  /** The text up to the value of `images.pump`. */
  readonly beforeImages: string;
  /** The object keys of the photos in the photo store. */
  readonly pump: string | null;
  readonly odometer: string | null;
}

export interface RecordTerms {
  /** True if the key shows drivers' mobile numbers. */
  readonly mobileNumber: boolean;
  /** Returns the presigned URL of one object. */
  readonly presign: (objectKey: string) => string;
  /** When the image URLs expire, as printed. */
  readonly expiresAt: string;
}

/**
 * Returns a record as customers get it, with image URLs instead of object keys. Both channels send it. Throws an `Error` for a text
 * that is no record.
 */
export function recordText(record: string, terms: RecordTerms): string {
  const { presign, expiresAt } = terms;
  const { beforeImages, pump, odometer } = cutRecord(record, terms);
  const image = (objectKey: string | null) => (isImage(objectKey) ? `"${presign(objectKey)}"` : 'null');
  return `${beforeImages}${image(pump)}${ODOMETER}${image(odometer)},"expires_at":"${expiresAt}"}}`;
}

/** An empty object key is no image: it would be signed as a URL that lists the bucket. */
function isImage(objectKey: string | null): objectKey is string {
  return objectKey !== null && objectKey !== '';
}

/** Cuts a record for those who may see the mobile number, or may not. */
export function cutRecord(record: string, { mobileNumber }: Pick<RecordTerms, 'mobileNumber'>): CutRecord {
  const cuts = cutsOf(record);
  const pump = cuts.images + IMAGES.length;
  const odometer = record.indexOf(ODOMETER, pump);
  return {
    beforeImages: mobileNumber
      ? record.slice(0, pump)
      : record.slice(0, cuts.mobileNumber) + record.slice(cuts.fees, pump),
    pump: keyIn(record.slice(pump, odometer)),
    odometer: keyIn(record.slice(odometer + ODOMETER.length, -END.length)),
  };
}

/** Throws an `Error` for a text that is no record of this version. */
export function assertRecord(record: string): void {
  if (record !== NO_RECORD) cutsOf(record);
}

/** Looks from the end, since the driver, the fees and the images are a record's last members. */
function cutsOf(record: string): Cuts {
  const images = record.lastIndexOf(IMAGES);
  const fees = record.lastIndexOf(FEES, images);
  const driver = record.lastIndexOf(DRIVER, fees);
  if (images === -1 || fees === -1 || driver === -1)
    throw new Error('a record is stored in a form that this version does not read');
  const mobileNumber = record.indexOf(MOBILE_NUMBER, driver);
  return { driver, mobileNumber: mobileNumber === -1 ? fees : mobileNumber, fees, images };
}

function keyIn(json: string): string | null {
  if (json === 'null') return null;
  return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1);
}

/** Returns the record without the mobile number, or the same text if it has none. */
export function withoutMobileNumber(record: string): string {
  const { mobileNumber, fees } = cutsOf(record);
  return mobileNumber === fees ? record : record.slice(0, mobileNumber) + record.slice(fees);
}

/** True if the record names the driver: it is neither redacted nor erased. */
export function namesDriver(record: string): boolean {
  return redactedRecord(record) !== record;
}

/** Returns the record without its driver, or an equal text if it does not name the driver. */
export function redactedRecord(record: string): string {
  if (record === NO_RECORD) return record;
  const { driver, fees } = cutsOf(record);
  const name = record.indexOf(NAME, driver) + NAME.length;
  return `${record.slice(0, name)}"${REDACTED}"${record.slice(fees)}`;
}
