import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, ROOT, readDocument } from '../documents.ts';

/**
 * Files that a path runs through but is not about: tools, the process and its listener, the adapters behind the ports,
 * encryption, and spans, which are made only where there is a collector.
 */
const BENEATH =
  /^src\/(?:(?:base|tables|domain\/values|pull\/server|service|engines|push\/log|operator\/cli)\/|.*(?:-spans|\/master-key)\.ts$)/;
/** Rooms that a path enters by one file, which the lists name instead of the others. */
const BEHIND_A_DOOR =
  /^src\/(?:event-store\/(?!follow\.)|pull\/(?:edge\/|request-)|push\/pace\/(?!pace\.)|push\/sender\/(?!sender\.))/;

/** The files that docs/reading-lists.md names below this heading, in the order in which to read them. */
export function readingList(heading: string): { readonly first: string[]; readonly all: string[] } {
  const text = readDocument('docs/reading-lists.md');
  const [, after = ''] = text.split(`## ${heading}\n`);
  const [section = ''] = after.split('\n## ');
  const blocks = blocksOf(section).map((block) => block.text.trimEnd().split('\n'));
  const [first = [], ...others] = blocks.map((lines) => lines.map((line) => line.split(/\s/)[0] ?? ''));
  return { first, all: [...first, ...others.flat()] };
}

/** Returns those of these functions that a reader of the program needs: `<file>#<place>`. */
export function functionsToRead(functions: readonly string[]): Set<string> {
  const paths = functions.map((name) => name.slice(name.indexOf(ROOT) + ROOT.length + 1));
  const isLeftOut = (file: string): boolean => BENEATH.test(file) || BEHIND_A_DOOR.test(file);
  return new Set(paths.filter((path) => /^(?:src|projections)\//.test(path) && !isLeftOut(fileOf(path))));
}

export function fileOf(functionName: string): string {
  return functionName.split('#')[0] ?? '';
}

export function linesOfFile(path: string): number {
  return readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1;
}
