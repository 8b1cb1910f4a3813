import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/** `npm run test:long`: the black-box tests that wait for much: processes and engines killed, holds, retries. */
export default defineConfig({
  test: {
    ...config.test,
    include: ['test/e2e-long/**/*.test.ts', 'test/crash/crash.test.ts', 'test/disks/**/*.test.ts'],
    exclude: [],
    maxWorkers: 2,
  },
});
