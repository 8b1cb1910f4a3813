import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, ROOT, readDocument } from '../documents.ts';

/**
 * Files that a path runs through but is not about: tools, the process and its listener, the adapters behind the ports,
 * encryption, and spans, which are made only where there is a collector.
 */
const BENEATH =
  /^src\/(?:(?:base|tables|domain\/values|pull\/server|service|engines|push\/log|operator\/cli)\/|.*(?:-spans|\/master-key)\.ts$)/;

/** Returns the files that docs/reading-lists.md names below this heading, in the order in which to read them. */
export function readingList(heading: string): string[] {
  const text = readDocument('docs/reading-lists.md');
  const [, after = ''] = text.split(`## ${heading}\n`);
  const [block] = blocksOf(after);
  const lines = block?.text.trimEnd().split('\n') ?? [];
  return lines.map((line) => line.split(/\s/)[0] ?? '');
}

/** Returns the files, of these URLs of sources, that a reader of the program needs. */
export function filesToRead(urls: readonly string[]): Set<string> {
  const paths = urls.map((url) => url.slice(url.indexOf(ROOT) + ROOT.length + 1));
  return new Set(paths.filter((path) => /^(?:src|projections)\//.test(path) && !BENEATH.test(path)));
}

export function linesOfFile(path: string): number {
  return readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1;
}
