import { expect, onTestFinished, test } from 'vitest';
import { Directory } from '../../../projections/directory.ts';
import { openEngines } from '../../../src/app.ts';
import { systemClock } from '../../../src/clock.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { silentLog } from '../../../src/log.ts';
import { createMetrics } from '../../../src/ops/metrics.ts';
import { Standing } from '../../../src/ops/standing.ts';
import { ApiThreads } from '../../../src/service/api/api-threads.ts';
import { startApi } from '../../../src/service/api/start-api.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('an API of which a thread fails fails with its error, and still stops', async () => {
  const env = { FUEL_DATA_DIR: temporaryFolder(), FUEL_LISTEN: '127.0.0.1:0', FUEL_LOG_LEVEL: 'silent' };
  const config = loadConfig(env, 'serve');
  const engines = await openEngines(config, systemClock);
  onTestFinished(() => engines.close());
  const metrics = createMetrics();
  const standing = new Standing();
  const threads = new ApiThreads({
    config,
    names: ['api-2'],
    standing,
    snapshot: undefined,
    metrics,
    onMoved: () => undefined,
  });
  const api = await startApi({
    ...{ config, engines, directory: new Directory(), metrics, threads },
    availability: { state: () => 'unavailable' },
    log: silentLog,
    clock: systemClock,
  });
  threads.reload({ cert: 'no certificate', key: 'no key' });
  await expect(api.failed).rejects.toThrow(/PEM/);
  await api.stop();
  await expect(fetch(api.url)).rejects.toThrow('fetch failed');
});
