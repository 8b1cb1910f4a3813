import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib';

/** A few bytes may decompress to a thousand times as many. */
const LIMIT = { maxOutputLength: 256 * 1024 };
/** A body that was cut off is decompressed as far as possible. */
const ZLIB = { ...LIMIT, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { ...LIMIT, finishFlush: constants.BROTLI_OPERATION_FLUSH };
const ZSTD = { ...LIMIT, finishFlush: constants.ZSTD_e_flush };
const DEFLATE_METHOD = 8;

const UNPACK = new Map<string, (bytes: Buffer) => Buffer>([
  ['identity', (bytes) => bytes],
  ['gzip', (bytes) => gunzipSync(bytes, ZLIB)],
  ['x-gzip', (bytes) => gunzipSync(bytes, ZLIB)],
  // Some servers leave out the zlib header, which begins with the method.
  [
    'deflate',
    (bytes) =>
      ((bytes[0] ?? 0) & 15) === DEFLATE_METHOD ? inflateSync(bytes, ZLIB) : inflateRawSync(bytes, ZLIB),
  ],
  ['br', (bytes) => brotliDecompressSync(bytes, BROTLI)],
  ['zstd', (bytes) => zstdDecompressSync(bytes, ZSTD)],
]);

/** Undoes the content coding of a body's first bytes. If that fails, returns their number and the name of the coding. */
export function unpacked(bytes: Buffer, coding: string): Buffer {
  try {
    const plain = UNPACK.get(coding.trim().toLowerCase())?.(bytes);
    if (plain !== undefined && plain.length > 0) return plain;
  } catch {
    // The body is not what its header says, or too large.
  }
  return Buffer.from(bytes.length === 0 ? '' : `(${bytes.length} bytes of ${coding})`);
}
