import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MUTANTS, type Mutant } from './list.ts';

// node test/simulation/mutants/run.ts [FIRST [LAST]]: puts each fault of the list into a copy of the code, and runs seeds
// until one finds it, or FUEL_SIMULATION_MINUTES (10) are over. Prints the rows of the table in README.md.

const root = process.cwd();
const COPIED = ['src', 'projections', 'test/simulation', 'test/support', 'package.json'];
const LIMIT_MS = Number(process.env.FUEL_SIMULATION_MINUTES ?? 10) * 60_000;

function find({ file, from, to }: Mutant): string {
  const folder = mkdtempSync(join(tmpdir(), 'fuel-mutant-'));
  try {
    for (const path of COPIED) cpSync(join(root, path), join(folder, path), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const text = readFileSync(join(folder, file), 'utf8');
    if (text.split(from).length !== 2) return 'the text to replace is not there once';
    writeFileSync(
      join(folder, file),
      text.replace(from, () => to),
    );
    const startMs = performance.now();
    for (let seed = 1; ; seed++) {
      const leftMs = Math.ceil(LIMIT_MS - (performance.now() - startMs));
      if (leftMs <= 0) return `not found by ${seed - 1} seeds`;
      const args = ['test/simulation/main.ts', '--seed', String(seed), '--no-shrinking'];
      const { status, stdout } = spawnSync(process.execPath, args, {
        cwd: folder,
        encoding: 'utf8',
        timeout: leftMs,
      });
      if (status !== 1) continue;
      const violation = /^VIOLATION (.*)$/m.exec(stdout)?.[1] ?? 'it does not run';
      return `${seed} | ${Math.round((performance.now() - startMs) / 1000)} s | ${violation.slice(0, 150)}`;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const [first = '1', last = String(MUTANTS.length)] = process.argv.slice(2);
for (const [index, mutant] of MUTANTS.entries())
  if (index + 1 >= Number(first) && index + 1 <= Number(last))
    console.log(`| ${index + 1} | ${mutant.name} | ${find(mutant)} |`);
