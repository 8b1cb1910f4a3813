import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/** `npm run test:mutants`: of the mutated modules' tests those that need neither a server nor another process. */
export default defineConfig({
  test: {
    ...config.test,
    include: [
      'test/{domain,edge,lines,projections}/**/*.test.ts',
      'test/operator/apply/*.test.ts',
      'test/operator/import/*.test.ts',
      'test/tools/event-docs.test.ts',
      'test/accounts/{caller,issue-key,key-text}.test.ts',
      'test/push/targets/{target,webhook-url}.test.ts',
      'test/pull/{cursor,parameters}.test.ts',
      'test/push/dispatch/{attempt-check,lane-slots,ramp,report-batch,retry-schedule}.test.ts',
      'test/push/health/*.test.ts',
      'test/push/queue/{failure-streak,next-state}.test.ts',
    ],
    // The second holds the renderer against the schema on thousands of records: too long for every mutant.
    exclude: ['test/edge/rate-windows/mongodb*', 'test/projections/record-agreement.test.ts'],
    globalSetup: [],
  },
});
