import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
const INITIAL_MESSAGE_BYTES = 512;
const UTF8_BYTES_PER_UNIT = 3; // maximum per UTF-16 unit

/**
 * HMAC-SHA256 (RFC 2104) with one key. Two one-shot digests over prepared buffers take a sixth of the time of
 * `createHmac`, which sets up native state on each call; a page signs 200 URLs.
 */
export class HmacSha256 {
  /** The key's inner pad, then the message. */
  #inner: Buffer;
  #innerUsed: Buffer;
  /** The key's outer pad, then the inner digest. */
  readonly #outer: Buffer;

  constructor(key: Uint8Array) {
    const block = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
    this.#inner = Buffer.alloc(BLOCK_BYTES + INITIAL_MESSAGE_BYTES, INNER_PAD);
    this.#outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, OUTER_PAD);
    block.forEach((byte, index) => {
      this.#inner[index] = byte ^ INNER_PAD;
      this.#outer[index] = byte ^ OUTER_PAD;
    });
    this.#innerUsed = this.#inner;
  }

  /** The digest in lower-case hex. A string is signed as UTF-8. */
  hex(message: string | Uint8Array): string {
    return hash('sha256', this.#outerOf(message), 'hex');
  }

  /** The digest's 32 bytes. A string is signed as UTF-8. */
  bytes(message: string | Uint8Array): Buffer {
    return hash('sha256', this.#outerOf(message), 'buffer');
  }

  /** What `hex` returns for messages of `start`, then `length` ASCII characters, which alone are written for each. */
  hexAfter(start: string, length: number): (end: string) => string {
    const message = Buffer.concat([Buffer.from(start), Buffer.alloc(length)]);
    const inner = Buffer.concat([this.#inner.subarray(0, BLOCK_BYTES), message]);
    const outer = Buffer.from(this.#outer);
    return (end) => {
      inner.write(end, inner.length - length, 'latin1');
      outer.write(hash('sha256', inner, 'binary'), BLOCK_BYTES, 'latin1');
      return hash('sha256', outer, 'hex');
    };
  }

  #outerOf(message: string | Uint8Array): Buffer {
    // As text of one character a byte, since a digest as a buffer takes four times as long.
    this.#outer.write(hash('sha256', this.#innerOf(message), 'binary'), BLOCK_BYTES, 'latin1');
    return this.#outer;
  }

  #innerOf(message: string | Uint8Array): Buffer {
    const text = typeof message === 'string';
    this.#reserve(BLOCK_BYTES + message.length * (text ? UTF8_BYTES_PER_UNIT : 1));
    const end = BLOCK_BYTES + (text ? this.#inner.write(message, BLOCK_BYTES, 'utf8') : message.length);
    if (!text) this.#inner.set(message, BLOCK_BYTES);
    // Reused for messages of equal length, since creating a view is not free.
    if (this.#innerUsed.length !== end) this.#innerUsed = this.#inner.subarray(0, end);
    return this.#innerUsed;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#inner.length) return;
    const grown = Buffer.alloc(bytes);
    this.#inner.copy(grown, 0, 0, BLOCK_BYTES);
    this.#inner = grown;
    this.#innerUsed = grown;
  }
}
