import { isUtf8 } from 'node:buffer';
import { FuelError } from '../../base/errors.ts';
import { nestsDeeperThan } from '../../domain/values/bounds.ts';

/** A line's text, trimmed, and the same as UTF-8, which may share memory with the input's chunk. */
export interface LineText {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** A line of the input, numbered from 1, or its `fault` if it is too long or not UTF-8. Blank lines are left out. */
export type Line = { readonly number: number } & (LineText | { readonly fault: string });

/** The longest line, without its line feed. A transaction has less than 4 KiB; a file without line feeds must not fill the memory. */
export const MAX_LINE_BYTES = 64 * 1024;

const LINE_FEED = 10;

/** Whole lines of the input, the last one without its line feed. */
export interface LineBlock {
  /** The number of the first line, from 1. */
  readonly first: number;
  readonly bytes: Buffer;
}

/** The first bytes, in hexadecimal digits, of formats that have no lines of UTF-8, and what to do with them. */
const OTHER_FORMATS = [
  [/^1f8b08/, 'is gzip. Unpack it first (gzip -dc)'],
  [/^504b0304/, 'is a zip archive. Unpack it first (unzip -p)'],
  [/^28b52ffd/, 'is zstd. Unpack it first (zstd -dc)'],
  [/^fd377a58/, 'is xz. Unpack it first (xz -dc)'],
  [/^425a68/, 'is bzip2. Unpack it first (bzip2 -dc)'],
  [/^(?:fffe0000|0000feff|..000000|000000..)/, 'is UTF-32. Make it UTF-8 first (iconv -f UTF-32 -t UTF-8)'],
  [/^(?:fffe|feff|..00..00|00..00..)/, 'is UTF-16. Make it UTF-8 first (iconv -f UTF-16 -t UTF-8)'],
] as const;

/** Throws `REFUSED` for an input of which no line could be read. */
function refuseOtherFormat(input: Buffer): void {
  const start = input.toString('hex', 0, 4);
  const [, fault] = OTHER_FORMATS.find(([begins]) => begins.test(start)) ?? [];
  if (fault !== undefined) throw new FuelError('REFUSED', `the input ${fault}`);
}

/**
 * Yields the lines that each chunk of the input completes. Memory is bounded by one chunk and one line. Throws `REFUSED` if
 * the input is compressed or in another encoding.
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
    // The rest of a line that is already too long is not kept.
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
  const text = whole.trim(); // this also removes a byte order mark and CR
  if (text === '') return undefined;
  return { number, text, bytes: text.length === whole.length ? bytes : Buffer.from(text) };
}

/** The stream and the content of a line, or why it can't be used. */
export type ParsedLine<T> =
  | { readonly ok: true; readonly stream: string; readonly content: T }
  | { readonly ok: false; readonly reason: string };

/** A line with its number in the input, from 1, and the approximate length of its text. */
export type NumberedLine<T> = ParsedLine<T> & { readonly number: number; readonly characters: number };
export type UsableLine<T> = Extract<NumberedLine<T>, { readonly ok: true }>;

export type LineParser<T> = (line: LineText) => ParsedLine<T>;

/** Yields the lines of an input, at a time those that one chunk completes. */
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

/** The members of the JSON object on a line, or why there is none. */
export type JsonLine =
  | { readonly ok: true; readonly members: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: string };

export interface LineForm {
  /** The members that the object must have: `"type" and "data"`. */
  readonly members: string;
  /** How deep objects and arrays may nest. The line's own object is the first level. */
  readonly maxLevels: number;
  /** How the limit is described: `the 64 levels that …`. */
  readonly levels: string;
  /** Refuses an object that has a member twice. The check takes too long for an import. */
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
  // This comes before anything that walks the values by recursion.
  if (nestsDeeperThan(line, form.maxLevels)) {
    return { ok: false, reason: `nests deeper than ${form.levels}` };
  }
  const repeated = form.refusesRepeated ? repeatedMember(text) : undefined;
  if (repeated !== undefined)
    return { ok: false, reason: `has the member ${JSON.stringify(repeated)} twice` };
  return { ok: true, members: line as Readonly<Record<string, unknown>> };
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/**
 * Returns the first name that an object in this text has twice. `JSON.parse` would silently keep the last value. The text must be
 * valid JSON.
 */
export function repeatedMember(json: string): string | undefined {
  const open: (Set<string> | undefined)[] = [];
  let text = '';
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (token !== ':') text = token;
    else {
      const name = JSON.parse(text) as string;
      const names = open.at(-1);
      if (names?.has(name)) return name;
      names?.add(name);
    }
  }
  return undefined;
}
