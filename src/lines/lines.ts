import { isUtf8 } from 'node:buffer';

/** One line of the input, numbered from 1; `fault` where it is too long or not UTF-8. Blank lines are left out. */
export type Line = { readonly number: number } & ({ readonly text: string } | { readonly fault: string });

/** Without its line feed. A transaction has less than 4 KiB; a file without line feeds must not fill the memory. */
export const MAX_LINE_BYTES = 64 * 1024;

const LINE_FEED = 10;

/** Cuts a byte stream into lines, those of one chunk at a time. Memory is bounded by one chunk and one line. */
export async function* readLines(input: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let number = 0;
  let rest: Buffer[] = [];
  let restBytes = 0;
  const finish = (last: Buffer): Line | undefined => {
    number += 1;
    const tooLong = restBytes + last.length > MAX_LINE_BYTES;
    const whole = rest.length === 0 ? last : Buffer.concat([...rest, last]);
    rest = [];
    restBytes = 0;
    return tooLong ? { number, fault: `is longer than ${MAX_LINE_BYTES} bytes` } : toLine(number, whole);
  };
  for await (const chunk of input) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const line = finish(chunk.subarray(start, end));
      if (line !== undefined) lines.push(line);
      start = end + 1;
    }
    const tail = chunk.subarray(start);
    restBytes += tail.length;
    // Of a line that is too long already only the length matters.
    if (restBytes <= MAX_LINE_BYTES) rest.push(tail);
    else rest = [];
    if (lines.length > 0) yield lines;
  }
  const last = finish(Buffer.alloc(0));
  if (last !== undefined) yield [last];
}

function toLine(number: number, bytes: Buffer): Line | undefined {
  if (!isUtf8(bytes)) return { number, fault: 'is not UTF-8' };
  const text = bytes.toString('utf8').trim(); // a byte order mark and CR count as white space
  return text === '' ? undefined : { number, text };
}
