import { type Line, LineCutter } from './lines.ts';

/** What a line says about which stream, or why it can't be used. */
export type ParsedLine<T> =
  | { readonly ok: true; readonly stream: string; readonly content: T }
  | { readonly ok: false; readonly reason: string };

/** A line with its number in the input, from 1, and the length of its text, about. */
export type NumberedLine<T> = ParsedLine<T> & { readonly number: number; readonly characters: number };

export type LineParser<T> = (text: string) => ParsedLine<T>;

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
    return { number, characters: line.text.length, ...parse(line.text) };
  });
}
