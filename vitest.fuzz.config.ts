import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/**
 * `npm run test:fuzz`: a million cases in some ten minutes on two cores, or as many as come in `FUEL_FUZZ_SECONDS` for each
 * test. `FUEL_FUZZ_SEED` is what they are made of.
 */
export default defineConfig({
  test: {
    ...config.test,
    include: ['test/fuzz/**/*.test.ts'],
    exclude: [],
    env: { FUEL_FUZZ_SECONDS: process.env.FUEL_FUZZ_CASES ? '0' : (process.env.FUEL_FUZZ_SECONDS ?? '200') },
    execArgv: ['--expose-gc'],
    maxWorkers: 2,
  },
});
