import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/** `npm run test:disks`: disks that fail and files that are damaged, for `FUEL_DISKS_SECONDS`. */
export default defineConfig({
  test: {
    ...config.test,
    include: ['test/disks/**/*.test.ts'],
    exclude: [],
    env: { FUEL_DISKS_SECONDS: process.env.FUEL_DISKS_SECONDS ?? '1800' },
    maxWorkers: 2,
  },
});
