import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

// Prints the lines of TypeScript in each part of the project. The core is everything outside the other parts.
const ROOT = join(import.meta.dirname, '..');
const AROUND = ['src/engines', 'src/operator', 'src/customers'];

function linesIn(...folders: readonly string[]): number {
  const files = globSync(
    folders.map((folder) => `${folder}/**/*.ts`),
    { cwd: ROOT },
  );
  return files.reduce((sum, file) => sum + readFileSync(join(ROOT, file), 'utf8').split('\n').length - 1, 0);
}

const around = AROUND.map((folder) => [folder.replace('src/', ''), linesIn(folder)] as const);
const all = linesIn('src', 'projections');
const core = around.reduce((left, [, lines]) => left - lines, all);
const shown = [['core', core] as const, ...around].map(
  ([part, lines]) => `${part} ${lines.toLocaleString('en')}`,
);
process.stdout.write(
  `lines: ${shown.join(', ')} (${all.toLocaleString('en')} in all); test ${linesIn('test').toLocaleString('en')}\n`,
);
