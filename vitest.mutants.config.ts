import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/** `npm run test:mutants`: of the mutated modules' tests those that need neither a server nor another process. */
export default defineConfig({
  test: {
    ...config.test,
    include: [
      'test/{domain,edge,import,projections}/**/*.test.ts',
      'test/docs/events.test.ts',
      'test/access/{caller,issue-key,key-text,webhook-url}.test.ts',
      'test/http/{cursor,parameters}.test.ts',
      'test/delivery/{attempt-check,health,health-events,health-run,health-watch}.test.ts',
      'test/delivery/{lanes,ramp,report-batch,retry-schedule}.test.ts',
    ],
    // The second holds the renderer against the schema on thousands of records: too long for every mutant.
    exclude: ['test/edge/mongodb*', 'test/projections/record-agreement.test.ts'],
    globalSetup: [],
  },
});
