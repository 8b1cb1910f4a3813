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
