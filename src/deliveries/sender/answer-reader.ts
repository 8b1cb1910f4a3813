import type { ReceiverAnswer } from '../queue/delivery-queue.ts';

const MAX_BODY_BYTES = 4 * 1024;
const MAX_HEADER_BYTES = 8 * 1024;

/** Keeps the status, up to 8 KiB of headers and the first 4 KiB of the body of an answer; the rest is let go. */
export class AnswerReader {
  readonly #status: number;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(status: number, headers: Readonly<Record<string, string | string[] | undefined>>) {
    this.#status = status;
    this.#headers = keptHeaders(headers);
  }

  read(chunk: Buffer): void {
    if (this.#bytes >= MAX_BODY_BYTES) return;
    // A copy: the chunk is part of a larger buffer, which would be kept with it.
    const kept = Buffer.from(chunk.subarray(0, MAX_BODY_BYTES - this.#bytes));
    this.#chunks.push(kept);
    this.#bytes += kept.length;
  }

  /** What has arrived so far. A character that the limit cuts in two is left out. */
  answer(): ReceiverAnswer {
    const bytes = Buffer.concat(this.#chunks);
    const body = bytes.length === 0 ? '' : new TextDecoder().decode(bytes, { stream: true });
    return { status: this.#status, headers: this.#headers, body };
  }
}

function keptHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  let left = MAX_HEADER_BYTES;
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const text = Array.isArray(value) ? value.join(', ') : value;
    left -= Buffer.byteLength(name) + Buffer.byteLength(text);
    if (left < 0) break;
    kept[name] = text;
  }
  return kept;
}
