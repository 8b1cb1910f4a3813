import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { REFERENCES } from '../../projections/transactions.ts';
import type { PageQuery, Place } from './view/transactions-view.ts';

/** The filters that must stay the same from page to page. The page size may change. */
export type PageFilters = Pick<PageQuery, 'fromMs' | 'toMs' | 'references' | 'statuses'>;

export type CursorReading = Place | 'malformed' | 'other filters';

export interface Cursors {
  encode(cursor: {
    readonly accountId: number;
    readonly filters: PageFilters;
    readonly place: Place;
  }): string;
  /**
   * Reads a cursor. If `filters` is `undefined` because those of the request are invalid, only the cursor is checked.
   */
  decode(
    text: string,
    request: { readonly accountId: number; readonly filters: PageFilters | undefined },
  ): CursorReading;
}

const VERSION = 1;
const CREATED_AT_OFFSET = 1;
const ID_OFFSET = 9;
const FINGERPRINT_OFFSET = 17;
const FINGERPRINT_BYTES = 12;
const CHECKSUM_OFFSET = FINGERPRINT_OFFSET + FINGERPRINT_BYTES;
const CHECKSUM_BYTES = 16;
/** The size is divisible by 3, so that base64 has no spare bits and different texts always mean different bytes. */
const CURSOR_BYTES = CHECKSUM_OFFSET + CHECKSUM_BYTES;
const CURSOR_TEXT = new RegExp(`^[A-Za-z0-9_-]{${(CURSOR_BYTES / 3) * 4}}$`);

/**
 * Creates the cursors of these keys. A cursor contains the place of the page's last record, a fingerprint of the
 * filters, and a keyed checksum that also covers the account. The first key makes cursors and all keys verify them, so
 * every process with the same keys agrees.
 */
export function createCursors(keys: readonly Uint8Array[]): Cursors {
  const secrets = keys.map((key) => createSecretKey(key)); // plain bytes would take 10 µs longer each time
  const [current] = secrets;
  if (current === undefined) throw new RangeError('cursors need at least one key');
  return {
    encode({ accountId, filters, place }) {
      const bytes = Buffer.alloc(CURSOR_BYTES);
      bytes.writeUInt8(VERSION, 0);
      bytes.writeBigInt64BE(BigInt(place.createdAtMs), CREATED_AT_OFFSET);
      bytes.writeBigInt64BE(BigInt(place.id), ID_OFFSET);
      bytes.set(fingerprint(filters), FINGERPRINT_OFFSET);
      bytes.set(checksum(current, bytes, accountId), CHECKSUM_OFFSET);
      return bytes.toString('base64url');
    },
    decode(text, { accountId, filters }) {
      if (!CURSOR_TEXT.test(text)) return 'malformed';
      const bytes = Buffer.from(text, 'base64url');
      const given = bytes.subarray(CHECKSUM_OFFSET);
      const genuine = secrets.some((key) => timingSafeEqual(checksum(key, bytes, accountId), given));
      if (!genuine || bytes.readUInt8(0) !== VERSION) return 'malformed';
      const made = bytes.subarray(FINGERPRINT_OFFSET, CHECKSUM_OFFSET);
      if (filters !== undefined && !fingerprint(filters).equals(made)) return 'other filters';
      return {
        createdAtMs: Number(bytes.readBigInt64BE(CREATED_AT_OFFSET)),
        id: Number(bytes.readBigInt64BE(ID_OFFSET)),
      };
    },
  };
}

function checksum(key: KeyObject, cursor: Buffer, accountId: number): Buffer {
  const covered = Buffer.alloc(CHECKSUM_OFFSET + 8);
  cursor.copy(covered, 0, 0, CHECKSUM_OFFSET);
  covered.writeBigInt64BE(BigInt(accountId), CHECKSUM_OFFSET);
  return createHmac('sha256', key).update(covered).digest().subarray(0, CHECKSUM_BYTES);
}

/** Returns equal bytes for filters that select the same records, whatever their order. */
function fingerprint({ fromMs, toMs, references = {}, statuses }: PageFilters): Buffer {
  const wanted = REFERENCES.map((name) => {
    const value = references[name] ?? null;
    return Array.isArray(value) ? value.toSorted((a, b) => a - b) : value;
  });
  const canonical = JSON.stringify([fromMs, toMs, ...wanted, statuses.toSorted()]);
  return hash('sha256', canonical, 'buffer').subarray(0, FINGERPRINT_BYTES);
}
