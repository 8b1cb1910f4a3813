import type { PageRow } from '../../../pull/view/transactions-view.ts';

/** The BSON types of a row's fields. */
const DOUBLE = 0x01;
const STRING = 0x02;
const DOCUMENT = 0x03;
const DATE = 0x09;
const INT32 = 0x10;
const INT64 = 0x12;
const TWO_TO_32 = 0x1_0000_0000;
/** The fields that a page shows, and those of a place, by their first two letters. */
const WANTED = new Map(
  ['_id', 'place', 'created_at', 'id', 'head', 'mobile_number', 'fees', 'pump', 'odometer'].map((name) => [
    firstTwo(name.charCodeAt(0), name.charCodeAt(1)),
    name,
  ]),
);

type Value = Buffer | number | Fields;
type Fields = { [name: string]: Value | undefined };

/**
 * Reads a row from its BSON, as it came from the server. With the driver's own objects a whole page (50 records, 100
 * signed URLs) takes 27 % more processor time, and 17 % more with a projection and without the check of UTF-8: medians
 * of 24 interleaved rounds on one `mongod`, 16 pages in flight.
 */
export function readPageRow(bytes: Uint8Array): PageRow {
  const fields = readFields(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
  const { place, head, fees, mobile_number, pump, odometer } = fields;
  if (!isFields(place) || !Buffer.isBuffer(head) || !Buffer.isBuffer(fees)) {
    throw new Error(`transaction ${fields._id} is in an index of the view, and is not a row`);
  }
  return {
    id: Number(place.id),
    createdAtMs: Number(place.created_at),
    head,
    mobileNumber: Buffer.isBuffer(mobile_number) ? mobile_number : null,
    fees,
    pump: textOrNull(pump),
    odometer: textOrNull(odometer),
  };
}

function isFields(value: Value | undefined): value is Fields {
  return typeof value === 'object' && !Buffer.isBuffer(value);
}

function textOrNull(value: Value | undefined): string | null {
  return Buffer.isBuffer(value) ? value.toString() : null;
}

/** The wanted fields of the document at `start`; texts as bytes, dates as milliseconds. Throws for a type that no row has. */
function readFields(bytes: Buffer, start: number): Fields {
  const fields: Fields = {};
  let at = start + 4; // after the length
  for (let type = bytes[at]; type !== 0; type = bytes[at]) {
    const nameStart = at + 1;
    let nameEnd = nameStart;
    while (bytes[nameEnd] !== 0) nameEnd++;
    const name = wantedName(bytes, nameStart, nameEnd);
    at = nameEnd + 1;
    if (type === STRING) {
      const length = bytes.readInt32LE(at); // with the zero at its end
      if (name !== undefined) fields[name] = bytes.subarray(at + 4, at + 3 + length);
      at += 4 + length;
    } else if (type === INT32) {
      if (name !== undefined) fields[name] = bytes.readInt32LE(at);
      at += 4;
    } else if (type === DOUBLE) {
      if (name !== undefined) fields[name] = bytes.readDoubleLE(at);
      at += 8;
    } else if (type === DATE || type === INT64) {
      if (name !== undefined) fields[name] = bytes.readInt32LE(at + 4) * TWO_TO_32 + bytes.readUInt32LE(at);
      at += 8;
    } else if (type === DOCUMENT) {
      if (name !== undefined) fields[name] = readFields(bytes, at);
      at += bytes.readInt32LE(at);
    } else {
      throw new Error(`a row of the view has a field of BSON type ${type}, which nothing writes`);
    }
  }
  return fields;
}

/** Most names are told apart by their first two letters. */
function wantedName(bytes: Buffer, start: number, end: number): string | undefined {
  const name = WANTED.get(firstTwo(bytes[start], bytes[start + 1]));
  if (name?.length !== end - start) return undefined;
  for (let at = 2; at < name.length; at++) if (bytes[start + at] !== name.charCodeAt(at)) return undefined;
  return name;
}

function firstTwo(first = 0, second = 0): number {
  return first * 256 + second;
}
