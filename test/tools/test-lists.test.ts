import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projects } from '../../vitest.config.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Expands `a/{b,c}.ts` to `a/b.ts` and `a/c.ts`, each of which must exist. */
function alternatives(glob: string): string[] {
  const braces = /\{([^{}]*)\}/.exec(glob);
  if (braces === null) return [glob];
  return (braces[1] ?? '').split(',').flatMap((each) => alternatives(glob.replace(braces[0], each)));
}

test.each([
  ['stryker.config.json', globsOfStryker()],
  ['vitest.config.ts', globsOfVitest()],
])('every part of every list in %s names a file', (_, globs) => {
  expect(globs.length).toBeGreaterThan(5);
  const isNothing = (glob: string) => globSync(glob, { cwd: ROOT }).length === 0;
  expect(globs.flatMap(alternatives).filter(isNothing)).toEqual([]);
});

function globsOfStryker(): string[] {
  const { mutate } = JSON.parse(readFileSync(join(ROOT, 'stryker.config.json'), 'utf8'));
  return (mutate as string[]).map((glob) => glob.replace(/^!/, ''));
}

function globsOfVitest(): string[] {
  return projects.flatMap(({ include = [], exclude = [] }) => [...include, ...exclude]);
}
