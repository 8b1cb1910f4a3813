import { isUtf8 } from 'node:buffer';
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

/** The lines of an input, those of one chunk at a time. `cutter`: of what was before it. */
export async function* parsedLines<T>(
  input: AsyncIterable<Buffer>,
  parse: LineParser<T>,
  cutter = new LineCutter(),
): AsyncGenerator<NumberedLine<T>[]> {
  for await (const chunk of input) yield parseLines(cutter.cut(chunk), parse);
  yield parseLines(cutter.end(), parse);
}

export function parseLines<T>(lines: readonly Line[], parse: LineParser<T>): NumberedLine<T>[] {
  return lines.map((line) => {
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
