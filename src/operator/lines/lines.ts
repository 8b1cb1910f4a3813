import { isUtf8 } from 'node:buffer';

/** One line of the input, numbered from 1; `fault` where it is too long or not UTF-8. Blank lines are left out. */
export type Line = { readonly number: number } & ({ readonly text: string } | { readonly fault: string });

/** Without its line feed. A transaction has less than 4 KiB; a file without line feeds must not fill the memory. */
export const MAX_LINE_BYTES = 64 * 1024;

const LINE_FEED = 10;

/** Where a cutter is: another continues from there. */
export interface CutState {
  /** Of the last line that is complete. */
  readonly number: number;
  /** What there is of the next line; nothing where it is too long already. */
  readonly rest: readonly Uint8Array[];
  readonly restBytes: number;
}

/** Cuts a byte stream into lines. Memory is bounded by one chunk and one line. */
export class LineCutter {
  #number: number;
  #rest: Uint8Array[];
  #restBytes: number;

  constructor({ number, rest, restBytes }: CutState = { number: 0, rest: [], restBytes: 0 }) {
    this.#number = number;
    this.#rest = [...rest];
    this.#restBytes = restBytes;
  }

  get state(): CutState {
    return { number: this.#number, rest: this.#rest, restBytes: this.#restBytes };
  }

  /** The lines that this chunk completes. */
  cut(chunk: Buffer): Line[] {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const line = this.#finish(chunk.subarray(start, end));
      if (line !== undefined) lines.push(line);
      start = end + 1;
    }
    const tail = chunk.subarray(start);
    this.#restBytes += tail.length;
    // Of a line that is too long already only the length matters.
    if (this.#restBytes <= MAX_LINE_BYTES) this.#rest.push(tail);
    else this.#rest = [];
    return lines;
  }

  /** The last line, which ends with the input. */
  end(): Line[] {
    const last = this.#finish(Buffer.alloc(0));
    return last === undefined ? [] : [last];
  }

  #finish(last: Buffer): Line | undefined {
    const number = ++this.#number;
    const tooLong = this.#restBytes + last.length > MAX_LINE_BYTES;
    const whole = this.#rest.length === 0 ? last : Buffer.concat([...this.#rest, last]);
    this.#rest = [];
    this.#restBytes = 0;
    return tooLong ? { number, fault: `is longer than ${MAX_LINE_BYTES} bytes` } : toLine(number, whole);
  }
}

function toLine(number: number, bytes: Buffer): Line | undefined {
  if (!isUtf8(bytes)) return { number, fault: 'is not UTF-8' };
  const text = bytes.toString('utf8').trim(); // a byte order mark and CR count as white space
  return text === '' ? undefined : { number, text };
}
