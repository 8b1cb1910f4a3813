import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/** `npm run test:crash`: processes and engines are killed for minutes, or for as long as `FUEL_CRASH_SECONDS` says. */
export default defineConfig({
  test: {
    ...config.test,
    include: ['test/crash/**/*.test.ts'],
    exclude: [],
    env: { FUEL_CRASH_SECONDS: process.env.FUEL_CRASH_SECONDS ?? '600' },
    maxWorkers: 1,
  },
});
