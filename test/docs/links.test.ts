import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { anchorsOf, readDocument } from '../support/documents.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('the documents', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'bench/**/*.md'], {
    cwd: ROOT,
    exclude: ['**/node_modules/**'],
  });

  it('link only to headings that exist', () => {
    const links = pages.flatMap((page) =>
      [...readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\(([^)\s#:]*)#([^)]*)\)/g)].map(
        ([, file = '', anchor = '']) => ({
          page,
          target: file === '' ? page : join(dirname(page), file),
          anchor,
        }),
      ),
    );
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter(({ target, anchor }) => !anchorsOf(readDocument(target)).includes(anchor))).toEqual(
      [],
    );
  });

  it('link only to files that exist', () => {
    const broken = pages.flatMap((page) =>
      [...readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(ROOT, dirname(page), target)))
        .map((target) => `${page} links to ${target}`),
    );
    expect(pages.length).toBeGreaterThan(1);
    expect(broken).toEqual([]);
  });

  it('name npm scripts that run files which exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Readonly<Record<string, string>>;
    };
    const missing = Object.values(scripts)
      .flatMap((script) => [...script.matchAll(/\bnode (\S+\.ts)/g)].map(([, file = '']) => file))
      .filter((file) => !existsSync(join(ROOT, file)));
    expect(missing).toEqual([]);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['test', 'demo', 'bench', 'types', 'lint']));
  });
});
