import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/** `npm run test:long`: processes and engines that are killed while the service works, and what takes over. */
export default defineConfig({
  test: { ...config.test, include: ['test/e2e-long/**/*.test.ts'], exclude: [], maxWorkers: 2 },
});
