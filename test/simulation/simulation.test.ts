import { expect, test, vi } from 'vitest';
import { PLAN } from './plan.ts';
import { Simulation } from './simulation.ts';

vi.setConfig({ testTimeout: 600_000 }); // some seconds, unless others have the machine

/** Runs one seed. `npm run test:all` runs more, and `npm run test:simulation` fresh ones. */
test('a few days of storms hold what must always hold', async () => {
  const { violations, figures } = await new Simulation({ ...PLAN, days: 3, seed: '8' }).run();
  expect(violations).toEqual([]);
  expect(figures.requests).toBeGreaterThan(20);
});
