import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** A fenced code block of a document. */
interface Block {
  /** `sh`, `json`, …; empty if the block names none. */
  readonly language: string;
  readonly text: string;
}

export function readDocument(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Returns the operator's pages as one text: docs/operations.md and those it links to. */
export function readOperations(): string {
  const pages = globSync('docs/operations/*.md', { cwd: ROOT }).toSorted();
  return ['docs/operations.md', ...pages].map(readDocument).join('\n');
}

/** Returns every document of the project, as paths from its root. */
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

/** Returns the inline code in sentences and tables, each on one line. */
export function inlineCodeOf(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replace(/\s+/g, ' '));
}

/** Returns the first shell block that contains this text. Throws if there is none. */
export function blockWith(text: string, part: string): string {
  const found = blocksOf(text).find((block) => block.language === 'sh' && block.text.includes(part));
  if (found === undefined) throw new Error(`no block has ${part}`);
  return found.text;
}

/** Returns the anchors of a document's headings, as GitHub makes them. */
export function anchorsOf(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Returns the text between a heading and the next one of its level or above. Throws if there is no such heading. */
export function sectionOf(text: string, heading: string): string {
  const start = text.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`there is no ${heading}`);
  const level = heading.indexOf(' ');
  const rest = text.slice(start + heading.length + 2);
  const next = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return next < 0 ? rest : rest.slice(0, next);
}
