import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

if ((process.env.FUEL_TEST_ENGINES ?? '') === '') {
  throw new Error(
    'test:engines needs FUEL_TEST_ENGINES: the program that gives engines (see CONTRIBUTING.md)',
  );
}

/** `npm run test:engines`: the black-box suites on servers, and servers that are hurt under load. */
export default defineConfig({
  test: {
    ...config.test,
    include: ['test/e2e/**/*.test.ts', 'test/e2e-engines/**/*.test.ts'],
    exclude: [],
    maxWorkers: 1,
  },
});
