import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { unpacked } from '../../../src/push/sender/unpacked.ts';

const TEXT = Array.from({ length: 3_000 }, (_, n) => `${(n * 7919) % 1000}`).join(' ');
const read = (bytes: Buffer, coding: string) => unpacked(bytes, coding).toString();

describe('the body of an answer', () => {
  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    [' GZIP', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['identity', Buffer.from],
  ])('in %s is unpacked, also where its end is missing', (coding, pack) => {
    const whole = pack(TEXT);
    expect(read(whole, coding)).toBe(TEXT);
    if (coding === 'zstd') return; // nothing of a block without its end
    const part = read(whole.subarray(0, whole.length >> 1), coding);
    expect(part.length).toBeGreaterThan(500);
    expect(TEXT.startsWith(part)).toBe(true);
  });

  test.each([
    ['an unknown coding', 'compress', Buffer.from('abc'), '(3 bytes of compress)'],
    ['more than one', 'gzip, br', Buffer.from('abc'), '(3 bytes of gzip, br)'],
    ['bytes that are not what it says', 'gzip', Buffer.from('abc'), '(3 bytes of gzip)'],
    ['what unpacks to too much', 'br', brotliCompressSync(Buffer.alloc(1 << 20)), /^\(\d+ bytes of br\)$/],
    ['nothing', 'gzip', Buffer.alloc(0), ''],
  ])('in %s is counted and named', (_what, coding, bytes, expected) => {
    expect(read(bytes, coding)).toEqual(
      typeof expected === 'string' ? expected : expect.stringMatching(expected),
    );
  });
});
