import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/documents.ts';
import { MUTANTS } from './list.ts';

test.each(MUTANTS)('the planted fault "$name" replaces a text that the code has once', ({ file, from }) => {
  expect(readFileSync(join(ROOT, file), 'utf8').split(from).length).toBe(2);
});
