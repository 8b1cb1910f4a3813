import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

// Which servers: those of the program that is named, or else doubles of EventStoreDB and one MongoDB.
process.env.FUEL_TEST_ENGINES ||= fileURLToPath(
  new URL('./test/support/engines/double-engines.ts', import.meta.url),
);

/** `npm run test:engines`: the black-box suites on servers, and servers that are hurt under load. */
export default defineConfig({
  test: {
    ...config.test,
    include: ['test/{e2e,e2e-long,e2e-engines}/**/*.test.ts'],
    exclude: [],
    maxWorkers: 1,
  },
});
