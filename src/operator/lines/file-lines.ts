import { createReadStream } from 'node:fs';

/**
 * Yields the lines of a file of UTF-8, with the line feeds that end them. No other character ends a line: a text in JSON
 * may have U+2028, at which `node:readline` would split it.
 */
export async function* fileLines(path: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const lines = `${rest}${chunk as string}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield `${line}\n`;
  }
  if (rest !== '') yield rest;
}
