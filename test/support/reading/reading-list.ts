import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, ROOT, readDocument } from '../documents.ts';

/** What a path runs through without being about it: tools, the process and its listener, the adapters behind the ports. */
const BENEATH = /^src\/(?:base|domain\/values|pull\/server|service|engines|operator\/cli)\//;

/** The files that ARCHITECTURE.md names below this heading, in the order in which to read them. */
export function readingList(heading: string): string[] {
  const text = readDocument('ARCHITECTURE.md');
  const [, after = ''] = text.split(`## ${heading}\n`);
  const [block] = blocksOf(after);
  const lines = block?.text.trimEnd().split('\n') ?? [];
  return lines.map((line) => line.split(/\s/)[0] ?? '');
}

/** Of URLs of sources, the files of the program that its reader needs. */
export function filesToRead(urls: readonly string[]): Set<string> {
  const paths = urls.map((url) => url.slice(url.indexOf(ROOT) + ROOT.length + 1));
  return new Set(paths.filter((path) => /^(?:src|projections)\//.test(path) && !BENEATH.test(path)));
}

export function linesOfFile(path: string): number {
  return readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1;
}
