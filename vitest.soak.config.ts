import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

/** `npm run test:soak`: an hour of load, or `FUEL_SOAK_MINUTES` with `FUEL_SOAK_PER_SECOND` transactions a second. */
export default defineConfig({
  test: { ...config.test, include: ['test/soak/soak.test.ts'], exclude: [], maxWorkers: 1 },
});
