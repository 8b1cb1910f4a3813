import { defineConfig } from 'vitest/config';
import { SlowFirst } from './test/support/slow-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/e2e-long/**', // minutes: `npm run test:long`
      'test/e2e-engines/**', // minutes, of which most is waiting: `npm run test:engines`
      'test/crash/crash.test.ts', // some seconds of it: `npm run test:long`; all: `npm run test:crash`
      'test/disks/**', // minutes: `npm run test:disks`, some of it in `npm run test:long`
      'test/soak/soak.test.ts', // an hour: `npm run test:soak`
      'test/crash/copy.test.ts', // minutes: `npm run test:crash`
    ],
    passWithNoTests: false,
    testTimeout: 40_000,
    hookTimeout: 40_000,
    globalSetup: ['test/support/engines/engines-setup.ts'],
    setupFiles: ['test/support/setup.ts'],
    pool: 'forks',
    isolate: false, // loading everything anew for each file would take longer than most of them
    sequence: { sequencer: SlowFirst },
    maxWorkers: 4, // some wait more than they work
  },
});
