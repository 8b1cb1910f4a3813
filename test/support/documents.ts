import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** A fenced block of a document. */
export interface Block {
  /** `sh`, `json`, …; empty where it has none. */
  readonly language: string;
  readonly text: string;
}

export function readDocument(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** The operator's pages as one text: docs/operations.md and those it links to. */
export function readOperations(): string {
  const pages = globSync('docs/operations/*.md', { cwd: ROOT }).toSorted();
  return ['docs/operations.md', ...pages].map(readDocument).join('\n');
}

/** Every document of the project, as paths from its root. */
export function documents(): string[] {
  return globSync(['*.md', 'docs/**/*.md', 'bench/README.md', 'examples/**/README.md'], {
    cwd: ROOT,
  }).toSorted();
}

export function blocksOf(text: string): Block[] {
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', block = '']) => ({
    language,
    text: block,
  }));
}

/** Code within sentences and tables, on one line each. */
export function inlineCodeOf(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replace(/\s+/g, ' '));
}

/** The first shell block that holds this text. Throws where there is none. */
export function blockWith(text: string, part: string): string {
  const found = blocksOf(text).find((block) => block.language === 'sh' && block.text.includes(part));
  if (found === undefined) throw new Error(`no block has ${part}`);
  return found.text;
}

/** The anchors of a document's headings, as GitHub makes them. */
export function anchorsOf(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** What stands between a heading and the next one of its level or above. Throws where there is no such heading. */
export function sectionOf(text: string, heading: string): string {
  const start = text.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`there is no ${heading}`);
  const level = heading.indexOf(' ');
  const rest = text.slice(start + heading.length + 2);
  const next = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return next < 0 ? rest : rest.slice(0, next);
}
