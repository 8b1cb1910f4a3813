import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Cursors, createCursors, type PageFilters } from '../../src/pull/cursor.ts';

const key = Buffer.alloc(32, 1);
const otherKey = Buffer.alloc(32, 2);
const filters: PageFilters = {
  fromMs: 1_000,
  toMs: 2_000,
  references: { corporate_group_id: 3, corporate_id: [31, 32] },
  statuses: ['CONFIRMED', 'EXTERNAL'],
};
const place = { createdAtMs: 1_500, id: 501 };
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

describe('a cursor', () => {
  // This is set up in a hook, since StrykerJS counts only failed tests, not a file that fails to load.
  let cursors: Cursors;
  let text: string;
  beforeEach(() => {
    cursors = createCursors([key]);
    text = cursors.encode({ accountId: 7, filters, place });
  });

  test('needs at least one key', () => {
    expect(() => createCursors([])).toThrow(RangeError);
  });

  test('gives back the place it was made of', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
        fc.maxSafeNat(),
        fc.maxSafeNat(),
        (createdAtMs, id, accountId) => {
          const made = cursors.encode({ accountId, filters, place: { createdAtMs, id } });
          expect(cursors.decode(made, { accountId, filters })).toEqual({ createdAtMs, id });
        },
      ),
    );
  });

  test('is malformed when any one character is another', () => {
    for (let index = 0; index < text.length; index++) {
      for (const char of `${ALPHABET}=+/ é`) {
        if (char === text[index]) continue;
        const changed = text.slice(0, index) + char + text.slice(index + 1);
        expect(cursors.decode(changed, { accountId: 7, filters })).toBe('malformed');
      }
    }
  });

  test('is malformed when it is cut, extended or anything else', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.nat({ max: text.length - 1 }).map((length) => text.slice(0, length)),
          fc.string({ minLength: 1 }).map((more) => text + more),
          fc
            .uint8Array({ minLength: 45, maxLength: 45 })
            .map((bytes) => Buffer.from(bytes).toString('base64url')),
        ),
        (other) => {
          expect(cursors.decode(other, { accountId: 7, filters })).toBe('malformed');
        },
      ),
    );
  });

  test('of another account is malformed', () => {
    expect(cursors.decode(text, { accountId: 8, filters })).toBe('malformed');
  });

  test.each<[string, Partial<PageFilters>]>([
    ['from', { fromMs: 1_001 }],
    ['to', { toMs: 2_001 }],
    ['corporate_group_id', { references: { corporate_id: [31, 32] } }],
    ['corporate_id', { references: { corporate_group_id: 3, corporate_id: [31] } }],
    ['corporate_id left out', { references: { corporate_group_id: 3 } }],
    ['status', { statuses: ['EXTERNAL'] }],
  ])('does not go with another %s', (_, other) => {
    expect(cursors.decode(text, { accountId: 7, filters: { ...filters, ...other } })).toBe('other filters');
  });

  test('goes with the same filters in another order', () => {
    const reordered: PageFilters = {
      ...filters,
      references: { corporate_group_id: 3, corporate_id: [32, 31] },
      statuses: ['EXTERNAL', 'CONFIRMED'],
    };
    expect(cursors.decode(text, { accountId: 7, filters: reordered })).toEqual(place);
  });

  test('is still judged when the filters have problems of their own', () => {
    expect(cursors.decode(text, { accountId: 7, filters: undefined })).toEqual(place);
    expect(cursors.decode(`${text}x`, { accountId: 7, filters: undefined })).toBe('malformed');
  });

  test('of another version is malformed, although its checksum is right', () => {
    const bytes = Buffer.from(text, 'base64url');
    const checked = bytes.length - 16;
    const signed = (version: number) => {
      bytes.writeUInt8(version, 0);
      const account = Buffer.alloc(8);
      account.writeBigInt64BE(7n);
      const checksum = createHmac('sha256', key).update(bytes.subarray(0, checked)).update(account);
      bytes.set(checksum.digest().subarray(0, 16), checked);
      return bytes.toString('base64url');
    };
    expect(signed(1)).toBe(text);
    expect(cursors.decode(signed(2), { accountId: 7, filters })).toBe('malformed');
  });

  test('is the same in every process with the same keys', () => {
    expect(createCursors([Buffer.from(key)]).encode({ accountId: 7, filters, place })).toBe(text);
  });

  test('made under an older key stays valid after a newer one was put before it', () => {
    const rotated = createCursors([otherKey, key]);
    expect(rotated.decode(text, { accountId: 7, filters })).toEqual(place);
    const made = rotated.encode({ accountId: 7, filters, place });
    expect(cursors.decode(made, { accountId: 7, filters })).toBe('malformed');
    expect(createCursors([otherKey]).decode(made, { accountId: 7, filters })).toEqual(place);
  });
});
