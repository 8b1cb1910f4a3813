import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { PLAN } from './plan.ts';
import { Simulation } from './simulation.ts';

/** The seeds. `npm run test:simulation` runs fresh ones for as long as it is told. */
const SEEDS = ['1', '3', '8'];

vi.setConfig({ testTimeout: 600_000 }); // two seconds each, unless others have the machine

test.each(SEEDS)('seed %s holds what must always hold', async (seed) => {
  const { violations, figures } = await new Simulation({ ...PLAN, seed }).run();
  expect(violations).toEqual([]);
  expect(figures.requests).toBeGreaterThan(50);
});

test('the same seed gives the same history, and another one another', async () => {
  const print = async (seed: string) =>
    (await new Simulation({ ...PLAN, days: 3, seed }).run()).history.print;
  const first = await print('7');
  expect(await print('7')).toBe(first);
  expect(await print('8')).not.toBe(first);
  const main = fileURLToPath(new URL('./main.ts', import.meta.url));
  const { stdout } = spawnSync(process.execPath, [main, '--seed', '7', '--days', '3'], { encoding: 'utf8' });
  expect(stdout).toContain(`history ${first}`); // in another process
});

test('three processes without faults deliver everything at its time', async () => {
  const { violations } = await new Simulation({
    ...PLAN,
    seed: '2',
    days: 5,
    processes: 3,
    faults: [],
  }).run();
  expect(violations).toEqual([]);
});
