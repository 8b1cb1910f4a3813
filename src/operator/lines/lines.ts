import { isUtf8 } from 'node:buffer';
import { FuelError } from '../../base/errors.ts';
import { nestsDeeperThan } from '../../domain/values/bounds.ts';
import { repeatedMember } from './repeated-member.ts';

/** A line's text without white space around it, and the same as UTF-8, which may be a part of the input's chunk. */
export interface LineText {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** One line of the input, numbered from 1; `fault` where it is too long or not UTF-8. Blank lines are left out. */
export type Line = { readonly number: number } & (LineText | { readonly fault: string });

/** Without its line feed. A transaction has less than 4 KiB; a file without line feeds must not fill the memory. */
export const MAX_LINE_BYTES = 64 * 1024;

const LINE_FEED = 10;

/** Some whole lines of the input, the last without its line feed. */
export interface LineBlock {
  /** The number of the first line, from 1. */
  readonly first: number;
  readonly bytes: Buffer;
}

/** How an input begins that has no lines of UTF-8, in hexadecimal digits, and what to do with it. */
const OTHER_FORMATS = [
  [/^1f8b08/, 'is gzip: unpack it (gzip -dc)'],
  [/^504b0304/, 'is a zip archive: unpack it (unzip -p)'],
  [/^28b52ffd/, 'is zstd: unpack it (zstd -dc)'],
  [/^fd377a58/, 'is xz: unpack it (xz -dc)'],
  [/^425a68/, 'is bzip2: unpack it (bzip2 -dc)'],
  [/^(?:fffe0000|0000feff|..000000|000000..)/, 'is UTF-32: make it UTF-8 (iconv -f UTF-32 -t UTF-8)'],
  [/^(?:fffe|feff|..00..00|00..00..)/, 'is UTF-16: make it UTF-8 (iconv -f UTF-16 -t UTF-8)'],
] as const;

/** Throws `REFUSED`: no line of it could be read. */
function refuseOtherFormat(input: Buffer): void {
  const start = input.toString('hex', 0, 4);
  const [, fault] = OTHER_FORMATS.find(([begins]) => begins.test(start)) ?? [];
  if (fault !== undefined) throw new FuelError('REFUSED', `the input ${fault} first`);
}

/**
 * The lines that each chunk of the input completes. Memory is bounded by one chunk and one line. Throws `REFUSED` where the
 * input is compressed, or in another encoding.
 */
export async function* lineBlocks(input: AsyncIterable<Buffer>): AsyncGenerator<LineBlock> {
  let first = 1;
  let rest: Buffer[] = [];
  let restBytes = 0;
  let isBegun = false;
  for await (const chunk of input) {
    if (!isBegun) refuseOtherFormat(chunk);
    isBegun = true;
    const feed = chunk.lastIndexOf(LINE_FEED);
    if (feed !== -1) {
      const bytes = Buffer.concat([...rest, chunk.subarray(0, feed)]);
      yield { first, bytes };
      first += 1 + lineFeedsIn(bytes);
      rest = [];
      restBytes = 0;
    }
    const tail = chunk.subarray(feed + 1);
    // Of a line that is too long already only that matters.
    if (restBytes <= MAX_LINE_BYTES) rest.push(tail);
    restBytes += tail.length;
  }
  yield { first, bytes: Buffer.concat(rest) };
}

function lineFeedsIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}

export function linesIn({ first, bytes }: LineBlock): Line[] {
  const lines: Line[] = [];
  for (let number = first, start = 0; start <= bytes.length; number++) {
    const feed = bytes.indexOf(LINE_FEED, start);
    const end = feed === -1 ? bytes.length : feed;
    const line = toLine(number, bytes.subarray(start, end));
    if (line !== undefined) lines.push(line);
    start = end + 1;
  }
  return lines;
}

function toLine(number: number, bytes: Buffer): Line | undefined {
  if (bytes.length > MAX_LINE_BYTES) return { number, fault: `is longer than ${MAX_LINE_BYTES} bytes` };
  if (!isUtf8(bytes)) return { number, fault: 'is not UTF-8' };
  const whole = bytes.toString('utf8');
  const text = whole.trim(); // a byte order mark and CR count as white space
  if (text === '') return undefined;
  return { number, text, bytes: text.length === whole.length ? bytes : Buffer.from(text) };
}

/** What a line says about which stream, or why it can't be used. */
export type ParsedLine<T> =
  | { readonly ok: true; readonly stream: string; readonly content: T }
  | { readonly ok: false; readonly reason: string };

/** A line with its number in the input, from 1, and the length of its text, about. */
export type NumberedLine<T> = ParsedLine<T> & { readonly number: number; readonly characters: number };

export type LineParser<T> = (line: LineText) => ParsedLine<T>;

/** The lines of an input, those that one chunk completes at a time. */
export async function* parsedLines<T>(
  input: AsyncIterable<Buffer>,
  parse: LineParser<T>,
): AsyncGenerator<NumberedLine<T>[]> {
  for await (const block of lineBlocks(input)) yield parseLines(block, parse);
}

export function parseLines<T>(block: LineBlock, parse: LineParser<T>): NumberedLine<T>[] {
  return linesIn(block).map((line) => {
    const { number } = line;
    if ('fault' in line) return { number, characters: 0, ok: false, reason: line.fault };
    return { number, characters: line.text.length, ...parse(line) };
  });
}

/** The members of the JSON object on one line, or why it is none. */
export type JsonLine =
  | { readonly ok: true; readonly members: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: string };

export interface LineForm {
  /** What the object must have: `"type" and "data"`. */
  readonly members: string;
  /** Objects and arrays within each other; the line's own object is the first. */
  readonly maxLevels: number;
  /** What it may not be deeper than: `the 64 levels that …`. */
  readonly levels: string;
  /** Whether no object may have a member twice. To look takes longer than an import has for a line. */
  readonly refusesRepeated?: true;
}

/** Reads a line that must be one JSON object. */
export function parseJsonLine(text: string, form: LineForm): JsonLine {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `is not JSON: ${(error as Error).message}` };
  }
  if (typeof line !== 'object' || line === null || Array.isArray(line)) {
    return { ok: false, reason: `is not an object with ${form.members}` };
  }
  // Before anything walks the values by recursion.
  if (nestsDeeperThan(line, form.maxLevels)) {
    return { ok: false, reason: `nests deeper than ${form.levels}` };
  }
  const repeated = form.refusesRepeated ? repeatedMember(text) : undefined;
  if (repeated !== undefined)
    return { ok: false, reason: `has the member ${JSON.stringify(repeated)} twice` };
  return { ok: true, members: line as Readonly<Record<string, unknown>> };
}
